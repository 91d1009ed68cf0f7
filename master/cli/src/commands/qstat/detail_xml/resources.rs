//! Requests in `qstat -j LIST -xml`, each with what 8.1.9 has in its memory of the attribute.

use crate::output::xml::XmlDocument;
use proto::amount::{Amount, Type};
use proto::complex::Consumable;
use proto::request::ResourceRequest;
use proto::wire::view::RequestedAttribute;

/// The largest double, which 8.1.9 has for `INFINITY`, as `%f` prints it.
const INFINITE: &str = "179769313486231570814527423731704356798070567525844996598917476803157260780028538760589558632766878171540458953514382464234321326889464182768467546703537516986049910576551282076245490090389328944075868508455133942304583236903222948165808559332123348274797826204144723168738177180919299881250404026184124858368.000000";

/// Writes a list of requests; left out where there is none. `known` has the attributes that the
/// complex knows.
pub fn resources(document: &mut XmlDocument, name: &str, requests: &[ResourceRequest], known: &[RequestedAttribute]) {
    if requests.is_empty() {
        return;
    }
    document.open(name);
    for request in requests {
        document.open("qstat_l_requests");
        let value = request.value.as_deref().unwrap_or("TRUE");
        document.leaf("CE_name", &request.name);
        match known.iter().find(|attribute| attribute.name.as_str() == request.name) {
            Some(attribute) => numbers(document, attribute, value),
            None => document.leaf("CE_stringval", value),
        }
        document.close();
    }
    document.close();
}

fn numbers(document: &mut XmlDocument, attribute: &RequestedAttribute, value: &str) {
    document.leaf("CE_valtype", valtype(attribute.r#type));
    document.leaf("CE_stringval", value);
    document.leaf("CE_doubleval", doubleval(attribute.r#type, value));
    document.leaf("CE_relop", 0);
    document.leaf("CE_consumable", consumable(attribute.consumable));
    document.leaf("CE_dominant", 0);
    document.leaf("CE_pj_doubleval", "0.000000");
    for name in ["CE_pj_dominant", "CE_requestable", "CE_tagged"] {
        document.leaf(name, 0);
    }
}

/// The number of a type in 8.1.9, which has none for maps: theirs is that of Open Cluster
/// Scheduler.
fn valtype(r#type: Type) -> u32 {
    match r#type {
        Type::Int => 1,
        Type::String => 2,
        Type::Time => 3,
        Type::Memory => 4,
        Type::Bool => 5,
        Type::CString => 6,
        Type::Host => 7,
        Type::Double => 8,
        Type::ReString => 9,
        Type::RsMap => 10,
    }
}

/// The number of the value; 0 of a text.
fn doubleval(r#type: Type, value: &str) -> String {
    match Amount::parse(value, r#type) {
        Ok(amount) if amount.is_infinite() => INFINITE.to_owned(),
        Ok(amount) => amount.decimal_text(r#type),
        Err(_) => "0.000000".to_owned(),
    }
}

fn consumable(consumable: Consumable) -> u32 {
    match consumable {
        Consumable::No => 0,
        Consumable::Yes => 1,
        Consumable::Job => 2,
        Consumable::Host => 3,
    }
}
