//! The formats that are not objects: files that users write, files that programs read, and the
//! protocol of load sensors.

use crate::manual::page::{File, Page};
use proto::accounting::FIELDS;
use proto::reporting;

/// A page for each of them.
pub fn pages() -> [File; 5] {
    [accounting(), reporting(), request(), aliases(), load_sensor()]
}

fn accounting() -> File {
    let mut page = Page::new("accounting", 5, "the classic accounting file");
    page.section("DESCRIPTION");
    page.paragraph(
        "A line for each attempt of a task that reached a host, and one for each slave task unless its environment \
         sums them up. The fields are separated by colons; a colon within a field is written as a blank. Times are \
         seconds since 1970. Lines that begin with `#` are comments. New records go to the end of the file.",
    );
    page.section("FIELDS");
    for (name, meaning) in FIELDS {
        page.item(name, "", &[meaning]);
    }
    page.section("EXAMPLES");
    page.paragraph("The processor time of each user:");
    page.example("awk -F: '!/^#/ { s[$4] += $37 } END { for (u in s) print u, s[u] }' accounting");
    page.section("FILES");
    page.item("SGE_ROOT/SGE_CELL/common/accounting", "", &["The file."]);
    page.section("SEE ALSO");
    page.paragraph("qacct(1), sge_conf(5), reporting(5)");
    page.file("accounting", 5)
}

fn reporting() -> File {
    let mut page = Page::new(
        "reporting",
        5,
        "the reporting file, which follows jobs, queues and hosts",
    );
    page.section("DESCRIPTION");
    page.paragraph(
        "A line for each step in the life of jobs and advance reservations, and for the use of queues, hosts and the \
         share tree. It is written if `reporting_params` of sge_conf(5) says `reporting=true`, every `flush_time` \
         seconds. New records go to the end of the file. A file that was moved away is begun anew.",
    );
    page.paragraph(
        "The fields are separated by colons; a colon within a field is written as a blank. The first field is the time \
         of writing, the second one the type of the record. The fields behind them follow below, by type. Times are \
         seconds since 1970.",
    );
    page.section("RECORDS");
    for r#type in reporting::TYPES {
        page.subsection(r#type.name);
        page.paragraph(r#type.meaning);
        if r#type.name != reporting::ACCT.name {
            r#type
                .fields
                .iter()
                .for_each(|(name, meaning)| page.item(name, "", &[meaning]));
        }
    }
    page.section("EXAMPLES");
    page.paragraph("Who deleted which job:");
    page.example("awk -F: '$2 == \"job_log\" && $4 == \"deleted\" && $9 != \"scheduler\" { print $5, $9 }' reporting");
    page.section("FILES");
    page.item("SGE_ROOT/SGE_CELL/common/reporting", "", &["The file."]);
    page.section("SEE ALSO");
    page.paragraph("sge_conf(5), host_conf(5), accounting(5), share_tree(5), qrstat(1), gridwright-events(1)");
    page.file("reporting", 5)
}

fn request() -> File {
    let mut page = Page::new("sge_request", 5, "options of qsub that hold for many jobs");
    page.section("DESCRIPTION");
    page.paragraph(
        "Each line has options of qsub(1), as on the command line. They are read from three files in the order below, \
         which are one source together. The script of a job and the command line are stronger.",
    );
    page.paragraph(
        "A value with a blank goes between two quotation marks. A word that begins with `#` begins a comment. A backslash \
         has no meaning. A word that is not an option is refused. `-clear` in a script or on the command line drops what \
         the files say.",
    );
    page.section("EXAMPLES");
    page.paragraph("A default for the run time, and mail to an address:");
    page.example("# for all jobs\n-l h_rt=1:0:0\n-M ann@example.org -m a");
    page.section("FILES");
    page.item("SGE_ROOT/SGE_CELL/common/sge_request", "", &["For all users."]);
    page.item("~/.sge_request", "", &["For one user."]);
    page.item(
        "./.sge_request",
        "",
        &["For jobs that are submitted in this directory."],
    );
    page.section("SEE ALSO");
    page.paragraph("qsub(1), sge_aliases(5)");
    page.file("sge_request", 5)
}

fn aliases() -> File {
    let mut page = Page::new("sge_aliases", 5, "paths of directories on other hosts");
    page.section("DESCRIPTION");
    page.paragraph(
        "Each line has four words: a path, a submit host, an execution host, and the path in place of the first one. `*` \
         is any host. If the working directory of a job begins with the path, it is replaced on that execution host. A \
         `#` begins a comment.",
    );
    page.section("EXAMPLES");
    page.paragraph("An automounter puts a prefix in front:");
    page.example("/tmp_mnt/  *  *  /");
    page.section("FILES");
    page.item(
        "SGE_ROOT/SGE_CELL/common/sge_aliases",
        "",
        &["For all users; it is read first."],
    );
    page.item("~/.sge_aliases", "", &["For one user."]);
    page.section("SEE ALSO");
    page.paragraph("qsub(1), sge_request(5)");
    page.file("sge_aliases", 5)
}

fn load_sensor() -> File {
    let mut page = Page::new("sge_load_sensor", 5, "the protocol of load sensors");
    page.section("DESCRIPTION");
    page.paragraph(
        "A load sensor is a program that reports values of its host or of the whole cluster. The agent of the host \
         starts it and asks it before each load report. `load_sensor` of sge_conf(5) names it.",
    );
    page.section("PROTOCOL");
    page.paragraph(
        "The sensor reads a line from its standard input. An empty line is a request; `quit` means that it ends now. It \
         answers a request on its standard output with the line `begin`, any number of lines `HOST:NAME:VALUE`, and the \
         line `end`. It flushes its output and waits for the next line.",
    );
    page.item(
        "HOST",
        "",
        &["The host of the value: `$HOST` of the environment, `global` for the whole cluster, or another host."],
    );
    page.item("NAME", "", &["The full name of an attribute of complex(5)."]);
    page.item(
        "VALUE",
        "",
        &["Everything behind the second colon. It has to fit the type of the attribute."],
    );
    page.paragraph(
        "A sensor without a complete answer within 60 seconds is ended and started again. One that ends by itself starts \
         again after a pause that grows from 1 to 300 seconds. What it writes to its standard error goes to the log.",
    );
    page.section("ENVIRONMENT");
    page.paragraph("HOST, SGE_ROOT, SGE_CELL, SGE_ARCH, SGE_JOB_SPOOL_DIR, PATH, LC_ALL=C, and nothing else.");
    page.section("EXAMPLES");
    page.paragraph("How many files wait in a directory:");
    page.example(
        "#!/bin/sh\nwhile read request; do\n    [ \"$request\" = quit ] && exit 0\n    echo begin\n    \
         echo \"$HOST:waiting_files:$(ls /var/tmp | wc -l)\"\n    echo end\ndone",
    );
    page.section("SEE ALSO");
    page.paragraph("gridwright-sensor(1), complex(5), sge_conf(5)");
    page.file("sge_load_sensor", 5)
}
