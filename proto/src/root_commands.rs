//! The commands that root runs for the queues and parallel environments of a host, as the host's
//! own file lists them.
//!
//! The launcher decides by this rule about commands with their values. The master warns by it about
//! commands as they are configured, with pseudo variables in them.

/// The most bytes of a list that a launcher sends to the master, with one for the end of each line.
pub const MAX_SENT_BYTES: usize = 32 << 10;

/// Pseudo variables of which a launcher knows the value itself.
pub const KNOWN: [&str; 6] = [
    "job_id",
    "ja_task_id",
    "job_owner",
    "pe_hostfile",
    "sge_root",
    "processors",
];

/// The start of the names of pseudo variables about file staging, for which [`CONSTANTS`] stand.
pub const FILE_STAGING: &str = "fs_";

/// Variables that the shepherd replaces later, and placeholders for absent values. No agent chooses
/// them.
pub const CONSTANTS: [&str; 7] = [
    "$stdin_path",
    "$stdout_path",
    "$stderr_path",
    "$merge_stderr",
    "\"\"",
    "0",
    "UNDEFINED",
];

/// Whether a list is short enough to be sent to the master, and to be kept there.
pub fn is_sendable(lines: &[String]) -> bool {
    lines.iter().map(|line| line.len() + 1).sum::<usize>() <= MAX_SENT_BYTES
}

/// Whether the words of a line admit those of a command. A program that is listed alone may have
/// arguments that are certain. Otherwise each listed word stands for one of the command.
pub fn admits<L: AsRef<str>, C: AsRef<str>>(
    line: &[L],
    command: &[C],
    is_certain: impl Fn(&str) -> bool,
    is_word: impl Fn(&str, &str) -> bool,
) -> bool {
    match (line, command) {
        ([program], [first, arguments @ ..]) => {
            program.as_ref() == first.as_ref() && arguments.iter().all(|argument| is_certain(argument.as_ref()))
        }
        _ => {
            let mut pairs = line.iter().zip(command);
            line.len() == command.len() && pairs.all(|(word, text)| is_word(word.as_ref(), text.as_ref()))
        }
    }
}

/// Whether a line admits a command as it is configured, with its pseudo variables.
pub fn admits_configured(line: &str, command: &str) -> bool {
    admits(&words(line), &words(command), is_certain, |word, text| word == text)
}

/// Whether a configured argument has a value that a launcher knows.
fn is_certain(argument: &str) -> bool {
    let name = argument.strip_prefix('$');
    CONSTANTS.contains(&argument) || name.is_some_and(|name| KNOWN.contains(&name) || name.starts_with(FILE_STAGING))
}

/// The words of a command; `${name}` is `$name`.
fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace()
        .map(|word| word.replace("${", "$").replace('}', ""))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_admits_its_own_command_and_a_program_alone_certain_arguments() {
        for (line, command, expected) in [
            ("/x/prolog", "/x/prolog", true),
            ("/x/prolog", "/x/prolog $job_id ${ja_task_id}", true),
            ("/x/prolog", "/x/prolog $fs_stdin_path 0 ${stdout_path}", true),
            ("/x/prolog", "/x/prolog $host", false),
            ("/x/prolog", "/x/prolog job_id", false),
            ("/x/prolog $host", "/x/prolog ${host}", true),
            ("/x/prolog -q", "/x/prolog", false),
            ("/x/other", "/x/prolog", false),
        ] {
            assert_eq!(admits_configured(line, command), expected, "{line}: {command}");
        }
    }
}
