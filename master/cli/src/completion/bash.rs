//! The script for bash: tables as `case` statements, and one function that looks things up in them.

use super::{CompletionSource, Names, commands, may_have_none};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const ENGINE: &str = r#"
# Offers the lines of standard input that begin with $2, with $1 in front of them. A manager can call
# an object `command`: names are compared as text, and one that a shell would run is left out.
_gridwright_offer() {
    local name
    while IFS= read -r name; do
        case $name in
        '' | *[![:alnum:]_@.=:+%/-]*) ;;
        "$2"*) COMPREPLY+=("$1$name") ;;
        esac
    done
}

# Completes the word at the cursor. A word of bash ends at = and :, one of a command at blanks.
_gridwright() {
    local line=${COMP_LINE:0:COMP_POINT} words cur= command prefix= REPLY=
    read -ra words <<<"$line"
    case $line in
    *[[:space:]]) ;;
    *) cur=${words[${#words[@]} - 1]} && unset "words[${#words[@]} - 1]" ;;
    esac
    COMPREPLY=()
    command=${words[0]##*/}
    if [ "$command" = gridwright ]; then
        if [ ${#words[@]} -eq 1 ]; then
            _gridwright_offer '' "$cur" <<<"${_gridwright_commands// /$'\n'}"
            return
        fi
        command=${words[1]}
    fi
    _gridwright_value "$command:${words[${#words[@]} - 1]}"
    case $REPLY in
    optional\ *)
        REPLY=${REPLY#optional }
        case $cur in -*) REPLY= ;; esac
        ;;
    esac
    if [ -z "$REPLY" ]; then
        case $cur in
        -*)
            _gridwright_options "$command"
            _gridwright_offer '' "$cur" <<<"${REPLY// /$'\n'}"
            return
            ;;
        esac
        _gridwright_operand "$command"
    fi
    case $REPLY in
    files) return ;;
    directories)
        compopt -o dirnames +o default +o bashdefault 2>/dev/null
        return
        ;;
    esac
    compopt +o default +o bashdefault 2>/dev/null
    case $REPLY in
    choices\ *)
        REPLY=${REPLY#choices }
        _gridwright_offer '' "$cur" <<<"${REPLY// /$'\n'}"
        ;;
    nothing) ;;
    *)
        case $cur in *,*) prefix=${cur%,*}, ;; esac
        [ "$REPLY" = resources ] && compopt -o nospace 2>/dev/null
        _gridwright_offer "$prefix" "${cur#"$prefix"}" < <(_gridwright_names "$REPLY")
        prefix=${cur%"${COMP_WORDS[COMP_CWORD]}"}
        COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
        ;;
    esac
}
"#;

/// The whole script.
pub fn script() -> String {
    let commands = commands();
    let names: Vec<&str> = commands.iter().map(|command| command.name).collect();
    let classic: Vec<&str> = commands
        .iter()
        .filter(|command| command.is_classic())
        .map(|command| command.name)
        .collect();
    let mut text = format!(
        "# Completions of Gridwright {} for bash: gridwright completions bash\n",
        version::RELEASE
    );
    let _ = writeln!(text, "_gridwright_commands='{} help'", names.join(" "));
    text.push_str("\n_gridwright_names() {\n    case $1 in\n");
    for names in Names::ALL {
        let _ = writeln!(text, "    {}) {} ;;", names.word(), names.command());
    }
    text.push_str("    esac 2>/dev/null\n}\n\n_gridwright_options() {\n    case $1 in\n");
    for command in &commands {
        let options: Vec<&str> = command.options.iter().map(|option| option.name).collect();
        let _ = writeln!(text, "    {}) REPLY='{}' ;;", command.name, options.join(" "));
    }
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut operands: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for command in &commands {
        for option in &command.options {
            if let Some(source) = CompletionSource::of_option(option) {
                let optional = if may_have_none(option) { "optional " } else { "" };
                values
                    .entry(format!("{optional}{}", word(&source)))
                    .or_default()
                    .push(format!("{}:{}", command.name, option.name));
            }
        }
        operands
            .entry(word(&command.operands))
            .or_default()
            .push(command.name.to_owned());
    }
    text.push_str("    esac\n}\n");
    table(&mut text, "_gridwright_value", &values);
    table(&mut text, "_gridwright_operand", &operands);
    text.push_str(ENGINE);
    let _ = writeln!(
        text,
        "\ncomplete -o bashdefault -o default -F _gridwright gridwright {}",
        classic.join(" ")
    );
    text
}

fn table(text: &mut String, function: &str, rows: &BTreeMap<String, Vec<String>>) {
    let _ = write!(text, "\n{function}() {{\n    case $1 in\n");
    for (word, keys) in rows {
        let _ = writeln!(text, "    {}) REPLY='{word}' ;;", keys.join(" | "));
    }
    text.push_str("    esac\n}\n");
}

/// What the function of the script understands.
fn word(source: &CompletionSource) -> String {
    match source {
        CompletionSource::Choices(words) => format!("choices {}", words.join(" ")),
        CompletionSource::Names(names) => names.word().to_owned(),
        CompletionSource::Files => "files".to_owned(),
        CompletionSource::Directories => "directories".to_owned(),
        CompletionSource::Nothing => "nothing".to_owned(),
    }
}
