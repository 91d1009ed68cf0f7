//! Pseudo variables in paths and commands.

/// Replaces `$NAME` and `${NAME}` for the names in `table`; everything else stays, `$HOME` and `~`
/// among it, which the shepherd replaces because only it asks the name service.
pub fn substitute(text: &str, table: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (name, len) = name_of(rest);
        match table.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => out.push_str(value),
            None => out.push_str(&rest[..len]),
        }
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

/// Replaces `$NAME` in a path of `-o`, `-e`, `-i` or `-wd`. A name of `table` counts as soon as the
/// text begins with it, whatever follows, as in 8.1.9: `$JOB_ID_$TASK_ID` is two variables and a
/// line, and `${JOB_ID}` is none.
pub fn substitute_in_path(text: &str, table: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let body = &rest[at + 1..];
        let known = table
            .iter()
            .find_map(|(name, value)| Some((body.strip_prefix(name)?, value)));
        rest = match known {
            Some((left, value)) => {
                out.push_str(value);
                left
            }
            None => {
                out.push('$');
                body
            }
        };
    }
    out.push_str(rest);
    out
}

/// The variable's name at the start of a text that begins with `$`, and how many bytes it takes.
fn name_of(text: &str) -> (&str, usize) {
    let body = &text[1..];
    if let Some(inner) = body.strip_prefix('{') {
        return match inner.find('}') {
            Some(end) => (&inner[..end], end + 3),
            None => ("", 1),
        };
    }
    let end = body
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(body.len());
    (&body[..end], end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_and_others_stay() {
        let table = [("JOB_ID", "7"), ("TASK_ID", "3")];
        for (text, expected) in [
            ("/x/$JOB_ID.$TASK_ID", "/x/7.3"),
            ("${JOB_ID}a", "7a"),
            ("$HOME/$JOB_IDX", "$HOME/$JOB_IDX"),
            ("${JOB_ID", "${JOB_ID"),
            ("100$", "100$"),
            ("é$JOB_ID", "é7"),
        ] {
            assert_eq!(substitute(text, &table), expected);
        }
    }

    #[test]
    fn a_known_name_counts_in_a_path_whatever_follows() {
        let table = [
            ("JOB_ID", "7"),
            ("JOB_NAME", "n$JOB_ID"),
            ("TASK_ID", "3"),
            ("HOSTNAME", "vm"),
            ("USER", "ann"),
        ];
        for (text, expected) in [
            ("$JOB_ID_$TASK_ID", "7_3"),
            ("$JOB_IDa", "7a"),
            ("$JOB_NAME_$JOB_ID.x", "n$JOB_ID_7.x"),
            ("$USER_x/$HOSTNAME_x/$USERNAME", "ann_x/vm_x/annNAME"),
            ("$$JOB_ID$TASK_ID", "$73"),
            ("\\$JOB_ID", "\\7"),
            ("${JOB_ID}_b", "${JOB_ID}_b"),
            ("$SGE_TASK_ID.$JOB_ID", "$SGE_TASK_ID.7"),
            ("$JOB_$JOB_ID $job_id $HOST $", "$JOB_7 $job_id $HOST $"),
            ("$HOME/é$TASK_ID", "$HOME/é3"),
        ] {
            assert_eq!(substitute_in_path(text, &table), expected, "{text}");
        }
    }
}
