//! `qconf -scatl` and `-scat`: the categories of jobs, with what jobs in them have in common.

use super::elements;
use super::session::{DataFormat, Session, unexpected};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::output::json::JsonDocument;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::Query;
use proto::wire::view::{CategoryView, Data};

/// `-scatl`: all of them, by number.
pub fn list(session: &mut Session) -> Outcome {
    let categories = ask(session, Vec::new())?;
    match session.format {
        DataFormat::Text if categories.is_empty() => {
            output::note("no category defined");
            return Ok(exit::FAILED);
        }
        DataFormat::Text => output::data(&table(&categories)),
        DataFormat::Json => output::data(&JsonDocument::new().with("categories", &categories).finish()),
    }
    Ok(exit::OK)
}

/// `-scat`: some of them.
pub fn show(session: &mut Session, values: &[String]) -> Outcome {
    let number = |word: &str| {
        word.parse().map_err(|_| {
            let what = format!("error: \"{word}\" is no number of a category");
            Fail::from(
                Diagnostic::new(Code::BadValue, what)
                    .at("-scat")
                    .fix("qconf -scatl lists the numbers"),
            )
        })
    };
    let ids: Vec<u64> = elements(values).map(number).collect::<Result<_, Fail>>()?;
    if ids.is_empty() {
        // No number would mean all.
        output::note("error: no category is named");
        return Ok(exit::FAILED);
    }
    let categories = ask(session, ids)?;
    match session.format {
        DataFormat::Text => output::data(&categories.iter().map(fields).collect::<Vec<_>>().join("\n")),
        DataFormat::Json => output::data(&JsonDocument::new().with("categories", &categories).finish()),
    }
    Ok(exit::OK)
}

fn ask(session: &mut Session, ids: Vec<u64>) -> Result<Vec<CategoryView>, Fail> {
    let Data::Categories(categories) = session.ask(Query::Categories { ids })? else {
        return Err(unexpected());
    };
    Ok(categories)
}

fn table(categories: &[CategoryView]) -> String {
    let row = |CategoryView { id, jobs, text }: &CategoryView| format!("{id:>8} {jobs:>8} {text}\n");
    let rows: String = categories.iter().map(row).collect();
    format!("{:>8} {:>8} {}\n{}\n{rows}", "id", "rcount", "str", "-".repeat(50))
}

/// One a line, under the names of Open Cluster Scheduler's `category`(5).
fn fields(CategoryView { id, jobs, text }: &CategoryView) -> String {
    format!("id      {id}\nrcount  {jobs}\nstr     {text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_a_table_and_one_a_block_of_fields() {
        let one = CategoryView {
            id: 3,
            jobs: 12,
            text: "-l h_rt=00:01:00 -pe smp 4".to_owned(),
        };
        let head = "      id   rcount str\n--------------------------------------------------\n";
        assert_eq!(
            table(std::slice::from_ref(&one)),
            format!("{head}       3       12 -l h_rt=00:01:00 -pe smp 4\n")
        );
        assert_eq!(
            fields(&one),
            "id      3\nrcount  12\nstr     -l h_rt=00:01:00 -pe smp 4\n"
        );
    }
}
