//! `-binding` as parameters of the protocol: `binding_strategy`, `binding_type` and the numbers
//! that go with them.

use proto::binding::{BindingError, BindingInstance, BindingRequest, BindingStrategy, CoreAmount, CorePlace};
use std::collections::BTreeMap;

/// The most cores that an explicit list may name.
const PLACES_MAX: usize = 1_000;

/// The parameters that tell of a request, in the order of 8.1.9.
pub fn parameters(request: &BindingRequest) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut put = |name: &str, value: String| all.push((format!("binding_{name}"), value));
    let word = match &request.strategy {
        BindingStrategy::Linear { .. } => "linear",
        BindingStrategy::Striding { .. } => "striding",
        BindingStrategy::Explicit(_) => "explicit",
    };
    put("strategy", word.to_owned());
    put("type", request.instance.as_str().to_owned());
    match &request.strategy {
        BindingStrategy::Linear { amount, first } => {
            if let CoreAmount::Cores(cores) = amount {
                put("amount", cores.to_string());
            }
            put_place(&mut put, *first);
        }
        BindingStrategy::Striding { amount, step, first } => {
            put("amount", amount.to_string());
            put("step", step.to_string());
            put_place(&mut put, *first);
        }
        BindingStrategy::Explicit(places) => {
            put("exp_n", places.len().to_string());
            for (index, place) in places.iter().enumerate() {
                put(&format!("exp_socket{index}"), place.socket.to_string());
                put(&format!("exp_core{index}"), place.core.to_string());
            }
        }
    }
    all
}

fn put_place(put: &mut impl FnMut(&str, String), first: Option<CorePlace>) {
    if let Some(place) = first {
        put("socket", place.socket.to_string());
        put("core", place.core.to_string());
    }
}

/// Parameters that a verifier has set, by name without `binding_`.
#[derive(Debug, Default)]
pub struct BindingParameters(BTreeMap<String, String>);

impl BindingParameters {
    /// Takes a parameter, if it is one of these.
    pub fn take(&mut self, name: &str, value: &str) -> bool {
        let Some(name) = name.strip_prefix("binding_") else {
            return false;
        };
        self.0.insert(name.to_owned(), value.to_owned());
        true
    }

    /// The request with what was set in the place of what it said.
    ///
    /// # Errors
    /// In the words of 8.1.9 for `-binding`.
    pub fn change(self, known: Option<&BindingRequest>) -> Result<Option<BindingRequest>, BindingError> {
        if self.0.is_empty() {
            return Ok(known.cloned());
        }
        if self.0.get("strategy").is_some_and(String::is_empty) {
            return Ok(None);
        }
        let before = known.map(parameters).unwrap_or_default();
        let mut all: BTreeMap<String, String> = before
            .into_iter()
            .map(|(name, value)| (name["binding_".len()..].to_owned(), value))
            .collect();
        all.extend(self.0);
        let value = |name: &str| all.get(name).map_or("", String::as_str);
        let strategy = value("strategy").trim_end_matches("_automatic");
        let mut text = strategy.to_owned();
        let place = match (value("socket"), value("core")) {
            ("", _) | (_, "") => String::new(),
            (socket, core) => format!(":{socket},{core}"),
        };
        match strategy {
            "linear" => text += &format!(":{}{place}", value("amount")),
            "striding" => text += &format!(":{}:{}{place}", value("amount"), value("step")),
            _ => {
                for index in 0..value("exp_n").parse().unwrap_or(0).min(PLACES_MAX) {
                    let part = |name: &str| value(&format!("exp_{name}{index}"));
                    text += &format!(":{},{}", part("socket"), part("core"));
                }
            }
        }
        let strategy: BindingStrategy = text.parse()?;
        let instance = BindingInstance::ALL.into_iter().find(|it| it.as_str() == value("type"));
        Ok(Some(BindingRequest {
            instance: instance.unwrap_or_default(),
            strategy,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> BindingRequest {
        BindingRequest {
            instance: BindingInstance::Set,
            strategy: text.parse().unwrap(),
        }
    }

    fn changed(known: Option<&str>, set: &[(&str, &str)]) -> String {
        let mut parameters = BindingParameters::default();
        for (name, value) in set {
            assert!(parameters.take(name, value));
        }
        let known = known.map(request);
        let changed = parameters.change(known.as_ref()).unwrap();
        changed.map_or_else(|| "none".to_owned(), |request| request.to_string())
    }

    #[test]
    fn a_request_is_told_of_and_comes_back() {
        for text in [
            "linear:1",
            "linear:2:0,1",
            "striding:2:3",
            "striding:2:3:0,1",
            "explicit:0,0:1,1",
        ] {
            let told = parameters(&request(text));
            let set: Vec<(&str, &str)> = told
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(changed(None, &set), format!("set {text}"));
        }
        let linear = parameters(&request("linear:1"));
        let words: Vec<String> = linear.iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(
            words,
            ["binding_strategy linear", "binding_type set", "binding_amount 1"]
        );
    }

    #[test]
    fn a_verifier_binds_and_unbinds() {
        let automatic = [
            ("binding_strategy", "linear_automatic"),
            ("binding_type", "env"),
            ("binding_amount", "1"),
        ];
        assert_eq!(changed(None, &automatic), "env linear:1");
        assert_eq!(changed(Some("linear:1"), &[("binding_amount", "4")]), "set linear:4");
        assert_eq!(changed(Some("linear:1"), &[("binding_strategy", "")]), "none");
    }
}
