//! Selectors: refusals with their paths, and matches.

use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs.iter();
    pairs
        .map(|&(key, value)| (key.into(), value.into()))
        .collect()
}

fn of_labels(pairs: &[(&str, &str)]) -> Result<Selector, Quarantine> {
    Selector::parse(Some(Parts {
        match_labels: pairs.to_vec(),
        match_expressions: vec![],
    }))
}

fn of_expressions(expressions: &[(&str, &str, &[&str])]) -> Result<Selector, Quarantine> {
    let expressions = expressions.iter();
    let expressions = expressions.map(|&(key, operator, values)| (key, operator, values.to_vec()));
    Selector::parse(Some(Parts {
        match_labels: vec![],
        match_expressions: expressions.collect(),
    }))
}

/// Whether a selector matches what `a=b,c=d` says.
fn matches(selector: &Selector, pairs: &str) -> bool {
    let pairs = pairs
        .split_terminator(',')
        .filter_map(|it| it.split_once('='));
    selector.matches(&labels(&pairs.collect::<Vec<_>>()))
}

fn bad_field(selector: Result<Selector, Quarantine>) -> String {
    selector.expect_err("the selector is invalid").field
}

#[test]
fn absent_selector_matches_nothing_and_is_not_empty() {
    let selector = Selector::parse(None).expect("absent is valid");
    assert!(!selector.is_empty());
    assert!(!matches(&selector, "") && !matches(&selector, "a=b"));
}

#[test]
fn empty_selector_matches_everything() {
    let selector = Selector::parse(Some(Parts::default())).expect("empty is valid");
    assert!(selector.is_empty());
    assert!(matches(&selector, "") && matches(&selector, "a=b"));
}

#[test]
fn keys_keep_upstreams_syntax() {
    let long = "x".repeat(63);
    let long_prefix = format!("{}/x", "p".repeat(253));
    for key in ["a", "A.b_c-9", "example.com/a", "0", &long, &long_prefix] {
        assert!(of_labels(&[(key, "v")]).is_ok(), "{key} is a key");
    }
    let too_long = "x".repeat(64);
    let too_long_prefix = format!("{}/x", "p".repeat(254));
    let bad = ["", "a b", "-a", "a-", "a/", "/a", "a/b/c", "a..b/c", "é"];
    let long = ["Example.com/a", &too_long, &too_long_prefix];
    for key in bad.into_iter().chain(long) {
        assert!(of_labels(&[(key, "v")]).is_err(), "{key} is no key");
        let field = bad_field(of_expressions(&[(key, "Exists", &[])]));
        assert_eq!(field, "selector.match_expressions[0].key");
    }
}

#[test]
fn values_keep_upstreams_syntax() {
    let long = "v".repeat(63);
    for value in ["", "a", "A.b_c-9", &long] {
        assert!(of_labels(&[("k", value)]).is_ok(), "{value} is a value");
    }
    let too_long = "v".repeat(64);
    for value in [" ", "a b", "-a", "a.", "a/b", "é", &too_long] {
        let field = bad_field(of_labels(&[("k", value)]));
        assert_eq!(field, "selector.match_labels[k]");
        let field = bad_field(of_expressions(&[("k", "In", &["fine", value])]));
        assert_eq!(field, "selector.match_expressions[0].values[1]");
    }
}

#[test]
fn the_first_bad_field_is_named() {
    let field = bad_field(of_expressions(&[
        ("a", "Exists", &[]),
        ("a b", "in", &["-"]),
    ]));
    assert_eq!(field, "selector.match_expressions[1].operator");
    for (operator, values) in [
        ("In", &[][..]),
        ("NotIn", &[]),
        ("Exists", &["-"]),
        ("DoesNotExist", &["a"]),
    ] {
        let field = bad_field(of_expressions(&[("a", operator, values)]));
        assert_eq!(field, "selector.match_expressions[0].values", "{operator}");
    }
}

#[test]
fn unknown_operators_are_named_in_the_detail() {
    for operator in ["", "Equals", "IN", "Gt"] {
        let quarantine = of_expressions(&[("a", operator, &["v"])]).expect_err("no operator");
        let expected = format!("\"{operator}\" is not an operator");
        assert!(quarantine.detail.starts_with(&expected));
    }
}

#[test]
fn hostile_text_is_cut_and_cannot_break_a_line() {
    let key = format!("a\n{}", "x".repeat(100_000));
    let Quarantine { field, detail } = of_labels(&[(&key, "v")]).expect_err("no key");
    assert!(field.starts_with("selector.match_labels[a?xx") && field.len() < 200);
    assert!(!detail.contains('\n') && detail.len() < 400);
}

#[test]
fn thousands_of_requirements_of_one_key_become_few() {
    let names: Vec<_> = (0..1_000).map(|n| format!("v{n}")).collect();
    let mut expressions = vec![("a", "Exists", vec![])];
    for name in &names {
        expressions.push(("a", "In", vec!["x", name.as_str()]));
        expressions.push(("a", "NotIn", vec![name.as_str()]));
        expressions.push(("b", "DoesNotExist", vec![]));
        expressions.push(("b", "NotIn", vec![name.as_str()]));
    }
    let selector = Selector::parse(Some(Parts {
        match_labels: vec![],
        match_expressions: expressions,
    }));
    let Ok(Selector::All(requirements)) = selector else {
        panic!("{selector:?}")
    };
    let (demands, forbids) = (&requirements.demands, &requirements.forbids);
    assert_eq!((demands.len(), forbids.len()), (1, 2));
    assert_eq!(demands[0].test, Test::In(vec!["x".into()]));
    assert_eq!(forbids[1].test, Test::DoesNotExist);
    let selector = Selector::All(requirements);
    assert!(matches(&selector, "a=x") && !matches(&selector, "a=x,b="));
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let values = proptest::collection::btree_set("[xyz]", 1..3);
    let values =
        values.prop_map(|values| values.iter().map(|value| value.as_str().into()).collect());
    let test = prop_oneof![
        values.clone().prop_map(Test::In),
        values.prop_map(Test::NotIn),
        Just(Test::Exists),
        Just(Test::DoesNotExist),
    ];
    ("[abc]", test).prop_map(|(key, test)| Requirement {
        key: key.as_str().into(),
        test,
    })
}

proptest! {
    #[test]
    fn few_requirements_say_what_many_said(
        all in proptest::collection::vec(requirement(), 0..9),
        labels in proptest::collection::btree_map("[abcd]", "[xyzw]", 0..4),
    ) {
        let labels = labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let labels: Labels = labels.collect();
        let each = all.iter().all(|one| one.holds(&labels));
        let selector = Selector::All(all.clone().into());
        prop_assert_eq!(selector.matches(&labels), each);
        prop_assert_eq!(selector.is_empty(), all.is_empty());
    }
}

#[test]
fn template_that_no_api_server_would_admit_is_named() {
    let template = labels(&[("app", "web"), ("tier", "front")]);
    let verify = |selector: Result<Selector, Quarantine>| {
        let selector = selector.expect("it is valid");
        selector.verify(&template).map_err(|why| why.to_string())
    };
    let expressions = |expression| {
        Selector::parse(Some(Parts {
            match_labels: vec![("app", "web")],
            match_expressions: vec![expression],
        }))
    };
    let required = "selector: is required".to_owned();
    assert_eq!(verify(Selector::parse(None)), Err(required));
    let empty = verify(Selector::parse(Some(Parts::default())));
    assert!(empty.is_err_and(|why| why.starts_with("selector: is empty")));
    for (expression, words) in [
        (("tier", "In", vec!["back"]), "tier must be back"),
        (("tier", "In", vec!["a", "b"]), "tier must be one of a, b"),
        (("tier", "NotIn", vec!["front"]), "tier must not be front"),
        (("zone", "Exists", vec![]), "zone must be set"),
        (("tier", "DoesNotExist", vec![]), "tier must not be set"),
    ] {
        let why = format!("template_labels: do not match the selector: the label {words}");
        assert_eq!(verify(expressions(expression)), Err(why));
    }
    assert_eq!(verify(expressions(("tier", "Exists", vec![]))), Ok(()));
}
