//! The columns of a host's line, as text; `-` stands for what is not known.

use crate::output::value;
use proto::wire::view::HostView;

/// What is not known.
pub const UNKNOWN: &str = "-";

/// The columns of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostColumns {
    /// Each column: how XML names it, and its text.
    values: [(&'static str, String); 10],
}

impl HostColumns {
    /// Reads them from what the host reported.
    pub fn of_host(host: &HostView) -> Self {
        let reported = |name: &str| host.load.get(name).map(String::as_str);
        let plain = |name| reported(name).map(whole);
        let memory = |name| reported(name).and_then(value::short_memory);
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        Self {
            values: [
                ("arch_string", or_unknown(reported("arch").map(str::to_owned))),
                ("num_proc", or_unknown(plain("num_proc"))),
                ("m_socket", or_unknown(plain("m_socket"))),
                ("m_core", or_unknown(plain("m_core"))),
                ("m_thread", or_unknown(plain("m_thread"))),
                (
                    "load_avg",
                    or_unknown(reported("load_avg").and_then(|text| value::load(text, 2))),
                ),
                ("mem_total", or_unknown(memory("mem_total"))),
                ("mem_used", or_unknown(memory("mem_used"))),
                ("swap_total", or_unknown(memory("swap_total"))),
                ("swap_used", or_unknown(memory("swap_used"))),
            ],
        }
    }

    /// Names and texts, in the order of `qhost -xml`.
    pub fn named(&self) -> &[(&'static str, String)] {
        &self.values
    }

    /// The texts in the order of the line.
    pub fn texts(&self) -> [&str; 10] {
        self.values.each_ref().map(|(_, text)| text.as_str())
    }
}

/// A count without decimals, however it was reported.
fn whole(text: &str) -> String {
    value::load(text, 0).unwrap_or_else(|| text.to_owned())
}
