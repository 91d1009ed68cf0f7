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
