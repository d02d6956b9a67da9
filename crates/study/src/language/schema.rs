//! The language as a JSON Schema (2020-12), for editors that complete and check study files.

use crate::language::leaf::metrics_of;
use crate::language::table::{MESSAGE_RATE, PARTIAL, STUDY};
use crate::language::{KeyDef, Kind, Presence};
use serde_json::{Map, Value, json};
use stacklab_model::Service;

/// The JSON Schema of study files, indented; the same bytes every time. It is made from the table that [`crate::parse`]
/// checks with. What takes more than one key to see (a comparison's levels, say) only `parse` checks.
pub fn json_schema() -> String {
    let mut schema = object(STUDY, true);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("stacklab study");
    schema["$defs"]["partial"] = object(PARTIAL, false);
    schema["$defs"]["partial"]["description"] = json!("A part of a study, merged over it key by key.");
    // The order of serde_json's maps depends on which features a build happens to enable.
    schema.sort_all_objects();
    format!("{schema:#}")
}

/// A table's schema; with `whole`, its required keys must be there.
fn object(keys: &[KeyDef], whole: bool) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys.iter().filter(|key| !key.is_out_of_place()) {
        properties.insert(key.name.to_owned(), property(key, whole));
        if whole && matches!(key.presence, Presence::Required) {
            required.push(key.name);
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(key: &KeyDef, whole: bool) -> Value {
    let mut schema = kind(&key.kind, whole);
    schema["description"] = json!(key.description());
    if let Presence::Default(text) = key.presence
        && let Some(value) = default(text)
    {
        schema["default"] = value;
    }
    schema
}

fn default(text: &str) -> Option<Value> {
    toml::from_str::<Map<String, Value>>(&format!("default = {text}")).ok()?.remove("default")
}

fn kind(kind: &Kind, whole: bool) -> Value {
    match kind {
        Kind::Text | Kind::System | Kind::Address(_) => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Services => json!({ "type": "string", "pattern": services() }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::OneOfNumbers(numbers) => json!({ "enum": numbers }),
        Kind::Number { least, most } => json!({ "type": "number", "minimum": least, "maximum": most }),
        Kind::PacedRate => {
            let names = json!({ "enum": ["link", "search"] });
            json!({ "anyOf": [self::kind(&MESSAGE_RATE, whole), names, quantity("%")] })
        }
        Kind::CountOr { most, name } => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": most }, { "const": name }] })
        }
        Kind::MessageRate => json!({ "anyOf": [self::kind(&MESSAGE_RATE, whole), { "const": "link" }] }),
        Kind::Rate => quantity("((bit|kbit|Mbit|Gbit)/s|bps|[kMG]bps|[kKMG])"),
        Kind::Duration { .. } => quantity("(ns|us|ms|s|min|h)"),
        Kind::Share => json!({ "anyOf": [
            quantity("%?"),
            { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
        ] }),
        Kind::Name { names, .. } => json!({ "enum": names }),
        Kind::Metric(probe) => json!({ "enum": metrics_of(*probe) }),
        Kind::Level => json!({ "type": ["string", "integer", "boolean"] }),
        Kind::List(of) => json!({
            "type": "array", "items": self::kind(of, whole), "minItems": 1, "uniqueItems": true,
        }),
        Kind::Tables(keys) => json!({ "type": "array", "items": object(keys, true) }),
        Kind::Table(keys) | Kind::SomeOf(keys) | Kind::OneOf(keys) => {
            let mut schema = object(keys, whole);
            let is_one = matches!(kind, Kind::OneOf(_));
            if is_one || whole && matches!(kind, Kind::SomeOf(_)) {
                schema["minProperties"] = json!(1);
            }
            if is_one {
                schema["maxProperties"] = json!(1);
            }
            schema
        }
        // Defined once, for it is large and three times the same.
        Kind::Part => json!({ "$ref": "#/$defs/partial" }),
        // Left out of its table's properties.
        Kind::Refused(_) => json!({}),
    }
}

fn services() -> String {
    let one = format!("({})", Service::NAMES.join("|"));
    format!("^\\s*(none|{one}(\\s*\\+\\s*{one})*)\\s*$")
}

/// A number and its unit.
fn quantity(unit: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^\\s*[0-9._]+\\s*{unit}\\s*$") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        serde_json::from_str(&json_schema()).unwrap()
    }

    /// Follows a study's value along the schema and collects the keys that the schema does not have.
    fn unknown(value: &toml::de::DeValue, schema: &Value, root: &Value, path: &str, found: &mut Vec<String>) {
        let schema = if schema.get("$ref").is_some() { &root["$defs"]["partial"] } else { schema };
        if let Some(table) = value.as_table() {
            for (name, value) in table.iter() {
                let path = format!("{path}.{}", name.get_ref());
                match schema["properties"].get(name.get_ref().as_ref()) {
                    Some(schema) => unknown(value.get_ref(), schema, root, &path, found),
                    None => found.push(path),
                }
            }
        } else if let Some(items) = value.as_array() {
            for item in items {
                unknown(item.get_ref(), &schema["items"], root, path, found);
            }
        } else {
            assert!(
                schema.get("type").or(schema.get("enum")).or(schema.get("anyOf")).is_some(),
                "{path}: {schema}"
            );
        }
    }

    #[test]
    fn every_key_of_the_quickstart_is_in_the_schema() {
        let text = include_str!("../../../../studies/quickstart.toml");
        for (text, expected) in
            [(text.to_owned(), vec![]), (text.replace("mtu =", "mtuu ="), vec![".testbed.mtuu"])]
        {
            let study = toml::de::DeValue::Table(toml::de::DeTable::parse(&text).unwrap().into_inner());
            let mut found = Vec::new();
            unknown(&study, &schema(), &schema(), "", &mut found);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_schema_says_what_parse_checks() {
        let schema = schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["required"], json!(["title", "factors", "probe"]));
        assert_eq!(schema["additionalProperties"], false);
        let properties = &schema["properties"];
        assert_eq!(properties["testbed"]["properties"]["mtu"]["minimum"], 1280);
        assert_eq!(properties["testbed"]["properties"]["mtu"]["default"], 1500);
        assert_eq!(properties["factors"]["properties"]["family"]["items"]["enum"], json!(["ipv4", "ipv6"]));
        assert_eq!(properties["probe"]["minProperties"], 1);
        let echo = &properties["probe"]["properties"]["echo"];
        assert_eq!(
            echo["properties"]["metrics"]["items"]["enum"],
            json!([
                "rtt",
                "rtt_mean",
                "rtt_p99",
                "rtt_p999",
                "rtt_interface",
                "rtt_interface_p99",
                "echo_loss"
            ])
        );
        assert_eq!(echo["properties"].get("message_rate"), None);
        assert_eq!(echo["properties"]["length"]["maxProperties"], 1);
        assert_eq!(schema["$defs"]["partial"].get("required"), None);
        assert_eq!(properties["scale"]["properties"]["paper"]["$ref"], "#/$defs/partial");
    }

    #[test]
    fn the_schema_is_the_same_every_time() {
        assert_eq!(json_schema(), json_schema());
    }

    #[test]
    fn every_default_has_a_json_form() {
        fn visit(keys: &[KeyDef], seen: &mut usize) {
            for key in keys {
                if let Presence::Default(text) = key.presence {
                    assert!(default(text).is_some(), "{}: {text}", key.name);
                    *seen += 1;
                }
                if let Some(keys) = key.kind.keys() {
                    visit(keys, seen);
                }
            }
        }
        let mut seen = 0;
        visit(STUDY, &mut seen);
        assert!(seen >= 10, "{seen}");
    }
}
