//! The fields by which the page reads recordings, compared with the contract.

use std::fs;

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};
use tests::binaries;

/// Messages of which the page must know every field, because their fields are the possible frames.
const WHOLE: [&str; 4] = [
    "decree.v1.ReconcileRequest",
    "decree.v1.ReconcileResponse",
    "decree.v1.Event",
    "decree.v1.Outcome",
];

/// Returns a constant of console/contract.js.
fn constant(name: &str) -> Value {
    let path = binaries::checkout().join("console/contract.js");
    let text = fs::read_to_string(path).expect("it is there");
    let (_, rest) = text
        .split_once(&format!("export const {name} = "))
        .expect("it has the constant");
    let end = rest.find("\n};").expect("it ends with its line");
    serde_json::from_str(&rest[..end + 2]).expect("it is JSON")
}

fn pool() -> DescriptorPool {
    DescriptorPool::decode(decree::FILE_DESCRIPTOR_SET).expect("it was compiled")
}

/// Returns the lines of a message or an enum of recordings, as the words before
/// and after `=`. The reflection of the server does not contain these descriptors.
fn recording(name: &str) -> Option<Vec<(String, u32)>> {
    let path = binaries::checkout().join("proto/decree/recording/v1/recording.proto");
    let text = fs::read_to_string(path).expect("it is there");
    let opens = [format!("\nmessage {name} {{"), format!("\nenum {name} {{")];
    let (_, rest) = opens.iter().find_map(|open| text.split_once(open))?;
    let (body, _) = rest.split_once("}\n\n").unwrap_or((rest, ""));
    let lines = body.lines().filter_map(|line| {
        let (words, number) = line.trim().strip_suffix(';')?.split_once(" = ")?;
        Some((words.to_owned(), number.parse().ok()?))
    });
    Some(lines.collect())
}

/// Returns the name of a message of recordings in the proto file.
fn recorded(pool: &DescriptorPool, name: &str) -> Option<String> {
    let own = name.strip_prefix("recording.").unwrap_or(name);
    let is_shared = own == name
        && pool
            .get_message_by_name(&format!("decree.v1.{name}"))
            .is_some();
    (!is_shared && recording(own).is_some()).then(|| own.to_owned())
}

/// Compares a message of recordings with the proto file.
fn assert_recorded(name: &str, fields: &Map<String, Value>) {
    let lines = recording(name).expect("it is there");
    for (field, read) in fields {
        let found = lines.iter().find_map(|(words, number)| {
            let (kind, called) = words.rsplit_once(' ')?;
            (called == field).then_some((kind, *number))
        });
        let (kind, number) = found.unwrap_or_else(|| panic!("{name} has no field {field}"));
        assert_eq!(read[0], json!(number), "{name}.{field}");
        let expected = match kind {
            "string" | "bool" => kind,
            "sint64" => "zigzag",
            "int64" | "uint64" | "EndReason" => "number",
            message => message.trim_start_matches("decree.v1."),
        };
        let read = read[1].as_str().expect("a type");
        assert_eq!(
            read.trim_start_matches("recording."),
            expected,
            "{name}.{field}"
        );
    }
    if name == "Record" {
        assert_eq!(lines.len(), fields.len(), "{name}");
    }
}

/// Returns the message for a name in the page.
fn message(pool: &DescriptorPool, name: &str) -> MessageDescriptor {
    let found = ["decree.v1", "google.protobuf"]
        .iter()
        .find_map(|package| pool.get_message_by_name(&format!("{package}.{name}")));
    found.unwrap_or_else(|| panic!("{name} is not in the contract"))
}

fn assert_field(pool: &DescriptorPool, field: &FieldDescriptor, read: &Value) {
    let name = field.full_name();
    assert_eq!(read[0], json!(field.number()), "{name}");
    let is_list = field.cardinality() == Cardinality::Repeated;
    assert_eq!(read[2] == 1, is_list, "{name}");
    let read = read[1].as_str().expect("a type");
    match field.kind() {
        Kind::String => assert_eq!(read, "string", "{name}"),
        Kind::Bool => assert_eq!(read, "bool", "{name}"),
        Kind::Sint64 => assert_eq!(read, "zigzag", "{name}"),
        Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Enum(_) => {
            assert_eq!(read, "number", "{name}");
        }
        Kind::Message(of) => assert_eq!(message(pool, read), of, "{name}"),
        Kind::Double
        | Kind::Float
        | Kind::Sint32
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64
        | Kind::Bytes => panic!("{name} is of a kind that the page cannot read"),
    }
}

#[test]
fn page_reads_recordings_by_the_fields_of_the_contract() {
    let pool = pool();
    let messages = constant("MESSAGES");
    for (name, fields) in messages.as_object().expect("an object") {
        let fields = fields.as_object().expect("an object");
        if let Some(recorded) = recorded(&pool, name) {
            assert_recorded(&recorded, fields);
            continue;
        }
        let message = message(&pool, name);
        for (field, read) in fields {
            let found = message.get_field_by_name(field);
            let found = found.unwrap_or_else(|| panic!("{name} has no field {field}"));
            assert_field(&pool, &found, read);
        }
        if WHOLE.contains(&message.full_name()) {
            assert_eq!(message.fields().count(), fields.len(), "{name}");
        }
    }
}

#[test]
fn page_knows_every_value_of_an_enum() {
    let pool = pool();
    let enums = constant("ENUMS");
    for (name, read) in enums.as_object().expect("an object") {
        let names = match pool.get_enum_by_name(&format!("decree.v1.{name}")) {
            Some(found) => found
                .values()
                .map(|it| {
                    (
                        it.name().to_owned(),
                        u32::try_from(it.number()).expect("not below 0"),
                    )
                })
                .collect(),
            None => recording(name).unwrap_or_else(|| panic!("{name} is not in the contract")),
        };
        let prefix = names[0]
            .0
            .strip_suffix("UNSPECIFIED")
            .expect("so the first is named");
        for (at, (value, number)) in names.iter().enumerate() {
            assert_eq!(usize::try_from(*number), Ok(at), "{name}");
            assert_eq!(
                &format!("{prefix}{}", read[at].as_str().unwrap_or_default()),
                value
            );
        }
        assert_eq!(read.as_array().map(Vec::len), Some(names.len()), "{name}");
    }
}
