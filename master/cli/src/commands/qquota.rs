//! `qquota`: refused by name until the master has resource quota sets.

use crate::args::{CommandDef, Operands, Values, flag, unsupported, with};
use crate::commands::Outcome;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};

/// What to do meanwhile.
const INSTEAD: &str =
    "resource quota sets are planned; max_u_jobs, max_aj_instances and consumables of global limit today";

const QQUOTA: CommandDef = CommandDef {
    name: "qquota",
    summary: "Shows how far resource quota sets are used up (not supported yet).",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("-help", "print this help"),
        unsupported(with("-h", Values::One, "hostlist", "display only selected hosts"), INSTEAD),
        unsupported(with("-l", Values::One, "resource_list", "display only selected resources"), INSTEAD),
        unsupported(with("-u", Values::One, "user_list", "display only selected users"), INSTEAD),
        unsupported(with("-pe", Values::One, "pe_list", "display only selected parallel environments"), INSTEAD),
        unsupported(with("-P", Values::One, "project_list", "display only selected projects"), INSTEAD),
        unsupported(with("-q", Values::One, "wc_queue_list", "display only selected queues"), INSTEAD),
        unsupported(flag("-xml", "display the information in XML format"), INSTEAD),
    ],
    exit_codes: "1 not supported, or a wrong option",
};

/// Runs `qquota`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QQUOTA.parse(words)?;
    if parsed.has("-help") {
        output::data(&QQUOTA.help());
        return Ok(exit::OK);
    }
    let refusal = Diagnostic::new(Code::NotSupported, "error: qquota: resource quota sets are not supported yet");
    Err(refusal.fix(INSTEAD).into())
}
