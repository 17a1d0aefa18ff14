//! docs/api.md equals the comments of the contract. `UPDATE_EXPECT=1` regenerates the page.

use std::{collections::BTreeMap, fmt::Write as _};

use expect_test::expect_file;
use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

const OPENING: &str = "\
# API reference

The services, messages and enums of the package `decree.v1`, with what their comments in [`proto/decree/v1`](../proto/decree/v1) say.
[protocol.md](protocol.md) has the rules by which they are used.
This page is made from the contract; a test holds the two together.
";

/// The field numbers of the parts of a descriptor, from descriptor.proto.
const FILE_MESSAGES: i32 = 4;
const FILE_ENUMS: i32 = 5;
const FILE_SERVICES: i32 = 6;
const PARTS: i32 = 2;

/// A file of the contract, and its comments by path.
struct Source {
    file: FileDescriptorProto,
    comments: BTreeMap<Vec<i32>, String>,
}

#[test]
fn reference_says_what_the_contract_says() {
    let sources = sources();
    let mut page = OPENING.to_owned();
    page.push_str("\n## Services\n");
    for source in &sources {
        for (at, service) in (0..).zip(&source.file.service) {
            source.service(at, service, &mut page);
        }
    }
    page.push_str("\n## Messages\n");
    for source in &sources {
        for (at, message) in (0..).zip(&source.file.message_type) {
            source.message(at, message, &mut page);
        }
    }
    page.push_str("\n## Enums\n");
    for source in &sources {
        for (at, one) in (0..).zip(&source.file.enum_type) {
            source.enumeration(at, one, &mut page);
        }
    }
    let nested = sources.iter().flat_map(|source| &source.file.message_type);
    let nested: Vec<_> = nested
        .filter(|it| !it.nested_type.iter().all(is_map) || !it.enum_type.is_empty())
        .collect();
    assert!(nested.is_empty(), "these are left out: {nested:?}");
    expect_file!["../../docs/api.md"].assert_eq(&page);
}

/// Returns the files of the contract, the services first.
fn sources() -> Vec<Source> {
    let set = FileDescriptorSet::decode(decree_api::CONTRACT);
    let files = set.expect("it was built from the contract").file;
    let ours = files
        .into_iter()
        .filter(|file| file.package() == "decree.v1");
    let mut sources: Vec<_> = ours.map(Source::new).collect();
    sources.sort_by(|a, b| a.file.name().cmp(b.file.name()));
    assert!(sources.len() > 5, "the search is broken");
    sources
}

fn is_map(message: &DescriptorProto) -> bool {
    let options = message.options.as_ref();
    options.is_some_and(|options| options.map_entry())
}

impl Source {
    fn new(file: FileDescriptorProto) -> Self {
        let info = file.source_code_info.iter();
        let locations = info.flat_map(|info| &info.location);
        let comments = locations
            .filter(|location| !location.leading_comments().is_empty())
            .map(|location| (location.path.clone(), one_line(location.leading_comments())));
        let comments = comments.collect();
        Self { file, comments }
    }

    /// Returns the comment of a part. Every part must have one.
    fn comment(&self, path: &[i32]) -> &str {
        let comment = self.comments.get(path);
        comment.unwrap_or_else(|| panic!("{}: {path:?} has no comment", self.file.name()))
    }

    fn service(&self, at: i32, service: &ServiceDescriptorProto, page: &mut String) {
        let path = [FILE_SERVICES, at];
        heading(service.name(), self.comment(&path), page);
        page.push_str(
            "\n| method | request | response | description |\n| --- | --- | --- | --- |\n",
        );
        for (number, method) in (0..).zip(&service.method) {
            let streams = |is: bool| if is { "stream of " } else { "" };
            let comment = self.comment(&[path[0], at, PARTS, number]);
            row(
                page,
                &[
                    &format!("`{}`", method.name()),
                    &format!(
                        "{}{}",
                        streams(method.client_streaming()),
                        link(method.input_type())
                    ),
                    &format!(
                        "{}{}",
                        streams(method.server_streaming()),
                        link(method.output_type())
                    ),
                    comment,
                ],
            );
        }
    }

    fn message(&self, at: i32, message: &DescriptorProto, page: &mut String) {
        let path = [FILE_MESSAGES, at];
        heading(message.name(), self.comment(&path), page);
        if message.field.is_empty() {
            return;
        }
        page.push_str("\n| field | type | description |\n| --- | --- | --- |\n");
        for (number, field) in (0..).zip(&message.field) {
            let comment = self.comment(&[path[0], at, PARTS, number]);
            let name = format!("`{}` = {}", field.name(), field.number());
            row(page, &[&name, &type_of(field, message), comment]);
        }
    }

    fn enumeration(&self, at: i32, one: &EnumDescriptorProto, page: &mut String) {
        let path = [FILE_ENUMS, at];
        heading(one.name(), self.comment(&path), page);
        page.push_str("\n| value | description |\n| --- | --- |\n");
        for (number, value) in (0..).zip(&one.value) {
            let comment = self.comment(&[path[0], at, PARTS, number]);
            let name = format!("`{}` = {}", value.name(), value.number());
            row(page, &[&name, comment]);
        }
    }
}

fn heading(name: &str, comment: &str, page: &mut String) {
    write!(page, "\n### {name}\n\n{comment}\n").expect("a string takes all");
}

fn row(page: &mut String, cells: &[&str]) {
    writeln!(page, "| {} |", cells.join(" | ")).expect("a string takes all");
}

/// Returns the type of a field as the .proto file spells it.
fn type_of(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let entry = message.nested_type.iter().find(|nested| {
        let name = field.type_name().rsplit('.').next();
        is_map(nested) && Some(nested.name()) == name
    });
    if let Some([key, value]) = entry.map(|entry| &entry.field[..]) {
        return format!(
            "map of {} to {}",
            type_of(key, message),
            type_of(value, message)
        );
    }
    let kind = match field.type_name() {
        "" => format!("`{}`", scalar_name(field.r#type())),
        name => link(name),
    };
    let in_choice = field.oneof_index.filter(|_| !field.proto3_optional());
    let choice = in_choice.and_then(|at| message.oneof_decl.get(usize::try_from(at).ok()?));
    let choice = choice.map_or(String::new(), |choice| {
        format!(", one of `{}`", choice.name())
    });
    match (field.label(), field.proto3_optional()) {
        (Label::Repeated, _) => format!("list of {kind}"),
        (Label::Optional, true) => format!("optional {kind}"),
        (Label::Optional | Label::Required, _) => kind + &choice,
    }
}

fn scalar_name(kind: Type) -> String {
    let name = kind.as_str_name().trim_start_matches("TYPE_");
    name.to_lowercase()
}

/// Returns the name of a type, with a link to its section if the type is ours.
fn link(name: &str) -> String {
    let name = name.trim_start_matches('.');
    match name.strip_prefix("decree.v1.") {
        Some(ours) => format!("[{ours}](#{})", ours.to_lowercase()),
        None => format!("`{name}`"),
    }
}

/// Returns a comment as the text of a table cell.
fn one_line(comment: &str) -> String {
    let words: Vec<_> = comment.split_whitespace().collect();
    let text = words.join(" ");
    text.replace('|', "\\|").replace('<', "\\<")
}
