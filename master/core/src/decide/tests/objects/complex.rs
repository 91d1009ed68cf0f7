//! A new complex that lacks attributes which cannot go.

use super::*;

#[test]
fn a_complex_keeps_what_cannot_go_and_takes_the_rest() {
    let mut cell = referring();
    let mut table = complex("");
    table.remove("m_thread");
    let consumable = table.value("h_vmem").unwrap().replace("YES NO", "YES YES");
    table.set("h_vmem", consumable);
    let reply = cell.change(vec![object_change(K::ComplexTable, "", Do::Replace(table))]);
    assert_eq!(
        texts(&reply),
        [
            "denied: Complex attribute \"lic\" is still referenced in host \"h1\".",
            "The built-in complex \"m_thread\" cannot be deleted",
            "boss@sub modified \"h_vmem\" in complex entry list",
        ]
    );
    let complex = &cell.core.state().config.complex;
    assert!(complex.lookup("m_thread").is_some() && complex.lookup("lic").is_some());
    assert!(complex.lookup("h_vmem").unwrap().consumable.is_consumable());
}

#[test]
fn one_attribute_is_added_changed_and_removed_and_the_others_stay() {
    let mut cell = referring();
    let fields = |name: &str, columns: &str| Fields::from_iter([(name, columns)]);
    let modify = |name: &str, columns: &str| Do::Attribute {
        edit: AttributeEdit::Modify,
        attribute: name.to_owned(),
        value: columns.to_owned(),
    };
    for (name, action, said) in [
        (
            "new",
            Do::Add(fields("new", "n INT <= YES NO 0 0")),
            "boss@sub added \"new\" to complex entry list",
        ),
        (
            "new",
            Do::Add(fields("new", "n INT <= YES NO 0 0")),
            "Complex attribute \"new\" already exists",
        ),
        (
            "",
            modify("new", "n INT <= YES YES 0 0"),
            "boss@sub modified \"new\" in complex entry list",
        ),
        (
            "",
            modify("nosuch", "n INT <= YES YES 0 0"),
            "Complex attribute \"nosuch\" does not exist",
        ),
        ("new", Do::Delete, "boss@sub removed \"new\" from complex list"),
        ("new", Do::Delete, "Complex attribute \"new\" does not exist"),
        (
            "lic",
            Do::Delete,
            "denied: Complex attribute \"lic\" is still referenced in host \"h1\".",
        ),
        ("arch", Do::Delete, "The built-in complex \"arch\" cannot be deleted"),
    ] {
        let reply = cell.change(vec![object_change(K::ComplexTable, name, action)]);
        assert_eq!(texts(&reply), [said]);
    }
    let complex = &cell.core.state().config.complex;
    assert!(complex.lookup("new").is_none() && complex.lookup("lic").is_some() && complex.lookup("arch").is_some());
}
