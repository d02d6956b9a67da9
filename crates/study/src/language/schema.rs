//! The language as a JSON Schema (2020-12), for editors that complete and check study files.

use crate::language::key::{KeyDef, Kind, Presence};
use crate::language::leaf::metrics_of;
use crate::language::sentences::doc;
use crate::language::table::{MESSAGE_RATE, PARTIAL, STUDY};
use serde_json::{Map, Value, json};
use stacklab_model::Service;

/// The JSON Schema of study files, indented; the same bytes every time. It is made from the table that [`crate::parse`]
/// checks with. What takes more than one key to see (a comparison's levels, say) only `parse` checks.
pub fn json_schema() -> String {
    let mut schema = object(STUDY, true);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!("stacklab study"));
    let mut partial = object(PARTIAL, false);
    partial.insert("description".to_owned(), json!("A part of a study, merged over it key by key."));
    schema.insert("$defs".to_owned(), json!({ "partial": partial }));
    // Sorted here, because the order of serde_json's maps depends on which features a build happens to enable.
    format!("{:#}", sorted(Value::Object(schema)))
}

/// A table's schema; with `whole`, its required keys must be there.
fn object(keys: &[KeyDef], whole: bool) -> Map<String, Value> {
    let known = || keys.iter().filter(|key| !matches!(key.kind, Kind::Refused(_)));
    let properties: Map<String, Value> =
        known().map(|key| (key.name.to_owned(), property(key, whole))).collect();
    let required: Vec<&str> = known()
        .filter(|key| whole && matches!(key.presence, Presence::Required))
        .map(|key| key.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn property(key: &KeyDef, whole: bool) -> Value {
    let mut schema = kind(&key.kind, whole);
    schema.insert("description".to_owned(), json!(doc(key)));
    if let Presence::Default(text) = key.presence
        && let Some(value) = default(text)
    {
        schema.insert("default".to_owned(), value);
    }
    schema.into()
}

/// A default, written in TOML, as JSON.
fn default(text: &str) -> Option<Value> {
    let text = format!("default = {text}");
    let table = toml::de::DeTable::parse(&text).ok()?.into_inner();
    json_of(table.get("default")?.get_ref())
}

fn json_of(value: &toml::de::DeValue<'_>) -> Option<Value> {
    use toml::de::DeValue;
    Some(match value {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(boolean) => json!(boolean),
        DeValue::Integer(number) => json!(number.as_str().parse::<i64>().ok()?),
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().ok()?),
        DeValue::Array(items) => {
            items.iter().map(|item| json_of(item.get_ref())).collect::<Option<Vec<_>>>()?.into()
        }
        DeValue::Table(table) => {
            let entries = table
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), json_of(value.get_ref())?)));
            Value::Object(entries.collect::<Option<Map<String, Value>>>()?)
        }
        DeValue::Datetime(_) => return None,
    })
}

fn kind(kind: &Kind, whole: bool) -> Map<String, Value> {
    let schema = match kind {
        Kind::Text | Kind::System | Kind::Address(_) => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Services => json!({ "type": "string", "pattern": services() }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::OneOfNumbers(numbers) => json!({ "enum": numbers }),
        Kind::Number { least, most } => json!({ "type": "number", "minimum": least, "maximum": most }),
        Kind::PacedRate => {
            json!({ "anyOf": [self::kind(&MESSAGE_RATE, whole), { "const": "link" }, { "type": "string", "pattern": quantity("%") }] })
        }
        Kind::MessageRate => json!({ "anyOf": [self::kind(&MESSAGE_RATE, whole), { "const": "link" }] }),
        Kind::Rate => {
            json!({ "type": "string", "pattern": quantity("((bit|kbit|Mbit|Gbit)/s|bps|[kMG]bps|[kKMG])") })
        }
        Kind::Duration { .. } => json!({ "type": "string", "pattern": quantity("(ns|us|ms|s|min|h)") }),
        Kind::Share => json!({ "anyOf": [
            { "type": "string", "pattern": quantity("%?") },
            { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
        ] }),
        Kind::Name { names, .. } => json!({ "enum": names }),
        Kind::Metric(probe) => json!({ "enum": metrics_of(*probe) }),
        Kind::Level => json!({ "type": ["string", "integer", "boolean"] }),
        Kind::List(of) => json!({
            "type": "array", "items": self::kind(of, whole), "minItems": 1, "uniqueItems": true,
        }),
        Kind::Tables(keys) => json!({ "type": "array", "items": object(keys, true) }),
        Kind::Table(keys) => return object(keys, whole),
        Kind::SomeOf(keys) => {
            let mut schema = object(keys, whole);
            schema.extend(whole.then(|| ("minProperties".to_owned(), json!(1))));
            return schema;
        }
        Kind::OneOf(keys) => {
            let mut schema = object(keys, whole);
            schema.insert("minProperties".to_owned(), json!(1));
            schema.insert("maxProperties".to_owned(), json!(1));
            return schema;
        }
        // Defined once, for it is large and three times the same.
        Kind::Part => json!({ "$ref": "#/$defs/partial" }),
        // Left out of its table's properties.
        Kind::Refused(_) => json!({}),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The pattern of a list of services.
fn services() -> String {
    let one = format!("({})", Service::NAMES.join("|"));
    format!("^\\s*(none|{one}(\\s*\\+\\s*{one})*)\\s*$")
}

/// The pattern of a number and its unit.
fn quantity(unit: &str) -> String {
    format!("^\\s*[0-9._]+\\s*{unit}\\s*$")
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> =
                map.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        single => single,
    }
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
                if let Kind::Table(keys) | Kind::SomeOf(keys) | Kind::OneOf(keys) | Kind::Tables(keys) =
                    key.kind
                {
                    visit(keys, seen);
                }
            }
        }
        let mut seen = 0;
        visit(STUDY, &mut seen);
        assert!(seen >= 10, "{seen}");
    }
}
