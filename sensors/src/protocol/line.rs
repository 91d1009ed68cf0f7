//! What one line of a sensor means (sensors/README.md "What is tolerated").

use crate::host::{HostSpec, SelfNames, host_matches};
use crate::protocol::assembler::Line;
use proto::id::AttributeName;

/// One value that a sensor reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The host it is for.
    pub host: HostSpec,
    /// The attribute, by its full name.
    pub name: AttributeName,
    /// The value as text, trimmed, never empty. Its type is the complex's business.
    pub text: String,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing; ignored.
    Blank,
    /// `begin` or `start`: a block begins.
    Opener,
    /// `end`: the block is complete.
    End,
    /// A value, perhaps with a doubt about the line.
    Value(Value, Option<Doubt>),
    /// The attribute has no value in this block.
    NoValue {
        /// The host.
        host: HostSpec,
        /// The attribute.
        name: AttributeName,
    },
    /// Not a line of the protocol; ignored, and the block still counts.
    NotUnderstood(Fault),
}

/// What is odd about a line that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The host field is empty and was taken for this host.
    EmptyHost,
}

/// Why a line was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no two colons.
    FewerThanThreeParts,
    /// The name between the colons is empty.
    EmptyName,
    /// The host field contains a blank, which no host name does: most likely a message, not a
    /// value.
    BlankInHost,
    /// The name contains a blank.
    BlankInName,
    /// It is longer than a line may be, so its value is incomplete.
    TooLong,
}

impl Fault {
    /// The fault in words that follow "ignored, because".
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::FewerThanThreeParts => "it is not of the form host:name:value",
            Fault::EmptyName => "the name between the colons is empty",
            Fault::BlankInHost => "its host field contains a blank",
            Fault::BlankInName => "its name contains a blank",
            Fault::TooLong => "it is too long",
        }
    }
}

/// Says what `line` means to the host with `self_names`.
///
/// Blanks around each of the three fields and a carriage return at the end are dropped. The value
/// is everything after the second colon, with its colons, blanks, commas and semicolons.
pub fn understand(line: &Line, self_names: &SelfNames) -> Meaning {
    if line.cut {
        return Meaning::NotUnderstood(Fault::TooLong);
    }
    match line.text.trim() {
        "" => Meaning::Blank,
        "begin" | "start" => Meaning::Opener,
        "end" => Meaning::End,
        text => data(text, self_names),
    }
}

fn data(text: &str, self_names: &SelfNames) -> Meaning {
    let mut fields = text.splitn(3, ':').map(str::trim);
    let (Some(host), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
        return Meaning::NotUnderstood(Fault::FewerThanThreeParts);
    };
    let has_blank = |field: &str| field.contains(|c: char| c.is_whitespace() || c.is_control());
    if name.is_empty() {
        return Meaning::NotUnderstood(Fault::EmptyName);
    }
    if has_blank(host) {
        return Meaning::NotUnderstood(Fault::BlankInHost);
    }
    if has_blank(name) {
        return Meaning::NotUnderstood(Fault::BlankInName);
    }
    let doubt = host.is_empty().then_some(Doubt::EmptyHost);
    let (host, name) = (host_matches(host, self_names), AttributeName::from(name));
    if value.is_empty() {
        return Meaning::NoValue { host, name };
    }
    Meaning::Value(
        Value {
            host,
            name,
            text: value.to_owned(),
        },
        doubt,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Domains;
    use proptest::prelude::*;

    fn meaning(text: &str) -> Meaning {
        let names = SelfNames::new(&"vm".into(), [], Domains::Compare);
        understand(
            &Line {
                text: text.to_owned(),
                cut: false,
            },
            &names,
        )
    }

    fn value(host: HostSpec, name: &str, text: &str) -> Meaning {
        Meaning::Value(
            Value {
                host,
                name: name.into(),
                text: text.to_owned(),
            },
            None,
        )
    }

    #[test]
    fn t4_split_on_the_first_two_colons_and_trim_each_field() {
        use HostSpec::{Global, This};
        let cases = [
            ("vm:lsb:1:2:3", value(This, "lsb", "1:2:3")),
            ("vm : lse : 44", value(This, "lse", "44")),
            ("vm:gpu.names:A;B;", value(This, "gpu.names", "A;B;")),
            (
                "vm:lsc:with blank, and comma\r",
                value(This, "lsc", "with blank, and comma"),
            ),
            ("   global:lsg:4", value(Global, "lsg", "4")),
            ("vm:load: 0.5 ", value(This, "load", "0.5")),
        ];
        for (text, expected) in cases {
            assert_eq!(meaning(text), expected, "{text:?}");
        }
    }

    #[test]
    fn t2_begin_and_start_open_and_end_closes() {
        assert_eq!(meaning("begin"), Meaning::Opener);
        assert_eq!(meaning(" start\r"), Meaning::Opener);
        assert_eq!(meaning("end "), Meaning::End);
        assert_eq!(meaning(" \r"), Meaning::Blank);
    }

    #[test]
    fn t5_empty_value_is_no_value_and_empty_host_is_this_host() {
        assert_eq!(
            meaning("vm:lsd:"),
            Meaning::NoValue {
                host: HostSpec::This,
                name: "lsd".into()
            }
        );
        let expected = Value {
            host: HostSpec::This,
            name: "lsa".into(),
            text: "5".to_owned(),
        };
        assert_eq!(meaning(":lsa:5"), Meaning::Value(expected, Some(Doubt::EmptyHost)));
    }

    #[test]
    fn t3_lines_that_do_not_split_in_three_are_not_understood() {
        let cases = [
            ("nocolon", Fault::FewerThanThreeParts),
            ("vm:lsa", Fault::FewerThanThreeParts),
            ("vm::5", Fault::EmptyName),
            ("** Error: in line: 5", Fault::BlankInHost),
            ("sensor.sh:line 5:syntax", Fault::BlankInName),
            ("read returned != 0", Fault::FewerThanThreeParts),
        ];
        for (text, fault) in cases {
            assert_eq!(meaning(text), Meaning::NotUnderstood(fault), "{text:?}");
        }
    }

    #[test]
    fn t8_t9_values_and_names_stay_as_they_are() {
        for (name, text) in [
            ("gpu.cuda.0.util", "97"),
            ("load.5m", "1.2T"),
            ("9zz", "true"),
            ("load_avg", "12GB"),
            ("x", "-3"),
        ] {
            assert_eq!(meaning(&format!("vm:{name}:{text}")), value(HostSpec::This, name, text));
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_meaning_and_no_value_is_empty_or_has_outer_blanks(text in "\\PC{0,40}") {
            if let Meaning::Value(value, _) = meaning(&text) {
                prop_assert!(!value.text.is_empty());
                prop_assert_eq!(value.text.trim(), &value.text);
                prop_assert!(!value.name.as_str().is_empty());
            }
        }
    }
}
