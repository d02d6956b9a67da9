//! Single values: one function for each kind, used for checking and for reading.

use crate::diagnostics::Problem;
use crate::language::Kind;
use crate::language::table::MESSAGE_RATES;
use crate::parse::tree::{Located, TomlValue};
use stacklab_model::{
    Family, Metric, NoServices, Pacing, Probe, Rate, SERVICES, SYSTEMS, ScopedAddr, Services, Systems,
    UnknownName, parse_duration, parse_ratio,
};
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueError {
    expected: String,
    title: Option<String>,
    help: Option<String>,
}

impl ValueError {
    fn or(self, other: &str) -> Self {
        ValueError { expected: format!("{}, or {other}", self.expected), ..self }
    }

    fn new(expected: impl Into<String>) -> Self {
        ValueError { expected: expected.into(), title: None, help: None }
    }

    pub(crate) fn problem(self, node: &Located, path: &str) -> Problem {
        let title = self.title.unwrap_or_else(|| format!("cannot use this value for `{path}`"));
        let mut problem = Problem::at(&node.place, title, self.expected);
        problem.help = self.help;
        problem
    }
}

pub(crate) fn text(node: &Located) -> Result<String, ValueError> {
    match &node.value {
        TomlValue::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(ValueError::new("expected text in quotes, not empty")),
    }
}

pub(crate) fn boolean(node: &Located) -> Result<bool, ValueError> {
    match node.value {
        TomlValue::Boolean(boolean) => Ok(boolean),
        _ => Err(ValueError::new("expected true or false")),
    }
}

pub(crate) fn integer(node: &Located, least: i64, most: i64) -> Result<u64, ValueError> {
    whole(node, |integer| (i128::from(least)..=i128::from(most)).contains(&integer))
        .ok_or_else(|| ValueError::new(format!("expected a whole number from {least} to {most}")))
}

pub(crate) fn one_of(node: &Located, numbers: &[i64]) -> Result<u64, ValueError> {
    let written: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    whole(node, |integer| numbers.iter().any(|number| i128::from(*number) == integer))
        .ok_or_else(|| ValueError::new(format!("expected one of {}", written.join(", "))))
}

fn whole(node: &Located, is_valid: impl Fn(i128) -> bool) -> Option<u64> {
    let TomlValue::Integer(integer) = node.value else { return None };
    u64::try_from(integer).ok().filter(|_| is_valid(integer))
}

pub(crate) fn number(node: &Located, least: f64, most: f64) -> Result<f64, ValueError> {
    let number = match node.value {
        TomlValue::Integer(integer) => integer as f64,
        TomlValue::Float(float) => float,
        _ => f64::NAN,
    };
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(ValueError::new(format!("expected a number from {least} to {most}")))
}

pub(crate) fn message_rate(node: &Located) -> Result<Pacing, ValueError> {
    let (least, most) = MESSAGE_RATES;
    match &node.value {
        TomlValue::Text(text) if text == "link" => Ok(Pacing::Link),
        _ => number(node, least, most).map(Pacing::Schedule).map_err(|misfit| misfit.or("\"link\"")),
    }
}

fn count_or(node: &Located, most: i64, name: &str) -> Result<(), ValueError> {
    match &node.value {
        TomlValue::Text(text) if text == name => Ok(()),
        _ => integer(node, 0, most).map(drop).map_err(|misfit| misfit.or(&format!("\"{name}\""))),
    }
}

/// As [`message_rate`], or a share of the flood rate, or the load that was searched.
pub(crate) fn paced_rate(node: &Located) -> Result<Pacing, ValueError> {
    match &node.value {
        TomlValue::Text(text) if text == "search" => Ok(Pacing::Searched),
        TomlValue::Text(text) if text.trim_end().ends_with('%') => share(node).map(Pacing::Share),
        _ => message_rate(node)
            .map_err(|misfit| misfit.or("\"search\", or a share of the flood rate, such as \"50 %\"")),
    }
}

pub(crate) fn rate(node: &Located) -> Result<Rate, ValueError> {
    let found = node_text(node);
    found
        .parse()
        .map_err(|error: stacklab_model::UnitError| ValueError::new(format!("expected {}", error.expected)))
}

/// Nanoseconds.
pub(crate) fn duration(node: &Located, least: &str, most: &str) -> Result<u64, ValueError> {
    let found = node_text(node);
    let bounds = parse_duration(least).unwrap_or(0)..=parse_duration(most).unwrap_or(u64::MAX);
    match parse_duration(found) {
        Ok(nanoseconds) if bounds.contains(&nanoseconds) => Ok(nanoseconds),
        Ok(_) => Err(ValueError::new(format!("expected a duration from {least} to {most}"))),
        Err(error) => Err(ValueError::new(format!("expected {}", error.expected))),
    }
}

/// A ratio between 0 and 1.
pub(crate) fn share(node: &Located) -> Result<f64, ValueError> {
    let ratio = match &node.value {
        TomlValue::Text(text) => parse_ratio(text).ok(),
        TomlValue::Float(float) if *float > 0.0 && *float < 1.0 => Some(*float),
        _ => None,
    };
    ratio.ok_or_else(|| ValueError::new("expected a share above 0 and below 1, such as \"2 %\" or 0.02"))
}

/// A share that is kept in millionths: none of them, and all, are other questions.
pub(crate) fn share_ppm(node: &Located) -> Result<u32, ValueError> {
    let ppm = (share(node)? * 1e6).round() as u32;
    if (1..1_000_000).contains(&ppm) {
        return Ok(ppm);
    }
    Err(ValueError::new("expected a share from 0.0001 % to 99.9999 %, such as \"2 %\" or 0.02"))
}

pub(crate) fn name<T: FromStr<Err = UnknownName>>(node: &Located) -> Result<T, ValueError> {
    let found = node_text(node);
    T::from_str(found).map_err(|unknown| unknown_name(node, &unknown, unknown.valid))
}

/// Up to this many names are listed in full.
const MAX_LISTED: usize = 12;
/// Of more names, this many are listed: the nearest to the one written.
const NEAREST: usize = 5;

/// The names that are possible, or the nearest of them.
pub(crate) fn expected_one_of(found: &str, valid: &[&str]) -> String {
    if valid.len() <= MAX_LISTED {
        return format!("expected one of {}", valid.join(", "));
    }
    let near = stacklab_model::by_distance(found, valid);
    let more = valid.len() - NEAREST;
    format!("expected one of {} and {more} more: stacklab study reference", near[..NEAREST].join(", "))
}

/// The text, or an empty one.
fn node_text(node: &Located) -> &str {
    if let TomlValue::Text(text) = &node.value { text } else { "" }
}

/// `valid` may be fewer names than the whole set.
fn unknown_name(node: &Located, unknown: &UnknownName, valid: &[&str]) -> ValueError {
    if let Some(new) = unknown.renamed_to() {
        return ValueError {
            title: Some(unknown.to_string()),
            help: None,
            ..ValueError::new(format!("write {new}"))
        };
    }
    let mut misfit = ValueError::new(expected_one_of(node_text(node), valid));
    if let TomlValue::Text(found) = &node.value {
        misfit.title = Some(format!("there is no {} `{found}`", unknown.set));
        misfit.help = stacklab_model::nearest(found, valid.iter().copied())
            .map(|name| format!("did you mean `{name}`?"));
    }
    misfit
}

pub(crate) fn metric(node: &Located, probe: Option<Probe>) -> Result<Metric, ValueError> {
    let found = node_text(node);
    match (found.parse::<Metric>(), probe) {
        (Ok(metric), Some(probe)) if !metric.is_of(probe) => {
            let own = metric.probe();
            Err(ValueError {
                title: Some(format!("probe {probe} does not take `{metric}`")),
                expected: expected_one_of(found, &metrics_of(Some(probe))),
                help: Some(format!("`{metric}` is taken by probe {own}: write it under [probe.{own}]")),
            })
        }
        (Ok(metric), _) => Ok(metric),
        (Err(unknown), _) => Err(unknown_name(node, &unknown, &metrics_of(probe))),
    }
}

pub(crate) fn any_metric(node: &Located) -> Result<Metric, ValueError> {
    metric(node, None)
}

/// The names of the metrics that a probe takes, or of all metrics.
pub(crate) fn metrics_of(probe: Option<Probe>) -> Vec<&'static str> {
    let metrics = Metric::ALL.iter().filter(|metric| probe.is_none_or(|probe| metric.is_of(probe)));
    metrics.map(|metric| metric.name()).collect()
}

/// A level of a factor, as printed.
pub(crate) fn level(node: &Located) -> Result<String, ValueError> {
    match node.value {
        TomlValue::Integer(integer) => Ok(integer.to_string()),
        TomlValue::Boolean(boolean) => Ok(boolean.to_string()),
        _ => {
            text(node).map_err(|_| ValueError::new("expected a level of the factor, such as \"ipv4\" or 128"))
        }
    }
}

pub(crate) fn systems(node: &Located) -> Result<String, ValueError> {
    let text = text(node).map_err(|_| ValueError::new(format!("expected {SYSTEMS}")))?;
    match text.parse::<Systems>() {
        Ok(_) => Ok(text),
        Err(unknown) => Err(ValueError {
            title: Some(unknown.to_string()),
            ..ValueError::new("not a system that a host can run")
        }),
    }
}

pub(crate) fn services(node: &Located) -> Result<String, ValueError> {
    let expected = ValueError::new(format!("expected {SERVICES}"));
    let text = text(node).map_err(|_| expected.clone())?;
    match text.parse::<Services>() {
        Ok(_) => Ok(text),
        Err(NoServices::Unknown(unknown)) => Err(ValueError {
            title: Some(format!("there is no {} `{}`", unknown.set, unknown.found)),
            help: stacklab_model::nearest(&unknown.found, unknown.valid.iter().copied())
                .map(|name| format!("did you mean `{name}`?")),
            ..expected
        }),
        Err(twice) => Err(ValueError { title: Some(twice.to_string()), ..expected }),
    }
}

/// An address of the family. A link-local one has the zone of its machine.
pub(crate) fn address(node: &Located, family: Family) -> Result<ScopedAddr, ValueError> {
    let expected = ValueError::new(format!("expected an {family} address in quotes"));
    let TomlValue::Text(text) = &node.value else { return Err(expected) };
    let address = match text.parse::<ScopedAddr>() {
        Ok(address) => address,
        Err(reason) if text.contains('%') => return Err(ValueError::new(reason)),
        Err(_) => return Err(expected),
    };
    if address.lacks_zone() {
        let wanted = format!("expected its interface on that machine behind it, as in \"{address}%eth0\"");
        return Err(ValueError {
            title: Some(format!("{address} is link-local")),
            ..ValueError::new(wanted)
        });
    }
    if Family::of(address.ip()) == family { Ok(address) } else { Err(expected) }
}

/// Whether the value has a kind other than table or list; such values are always valid here.
pub(crate) fn check(node: &Located, kind: &Kind) -> Result<(), ValueError> {
    match kind {
        Kind::Text => text(node).map(drop),
        Kind::Boolean => boolean(node).map(drop),
        Kind::Integer { least, most } => integer(node, *least, *most).map(drop),
        Kind::OneOfNumbers(numbers) => one_of(node, numbers).map(drop),
        Kind::Number { least, most } => number(node, *least, *most).map(drop),
        Kind::CountOr { most, name } => count_or(node, *most, name),
        Kind::MessageRate => message_rate(node).map(drop),
        Kind::PacedRate => paced_rate(node).map(drop),
        Kind::Rate => rate(node).map(drop),
        Kind::Duration { least, most } => duration(node, least, most).map(drop),
        Kind::Share => share(node).map(drop),
        Kind::Metric(probe) => metric(node, *probe).map(drop),
        Kind::Level => level(node).map(drop),
        Kind::System => systems(node).map(drop),
        Kind::Services => services(node).map(drop),
        Kind::Address(family) => address(node, *family).map(drop),
        Kind::Name { set, names } => match &node.value {
            TomlValue::Text(found) if names.contains(&found.as_str()) => Ok(()),
            _ => Err(unknown_name(
                node,
                &UnknownName { found: node_text(node).to_owned(), set, valid: names },
                names,
            )),
        },
        Kind::List(_) | Kind::Part | Kind::Refused(_) => Ok(()),
        Kind::Table(_) | Kind::SomeOf(_) | Kind::OneOf(_) | Kind::Tables(_) => Ok(()),
    }
}
