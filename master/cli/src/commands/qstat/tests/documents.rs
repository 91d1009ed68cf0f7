//! Documents of `qstat -xml`.

use super::{options, utc};
use crate::commands::captured;
use crate::commands::qstat::xml;
use crate::output::xml::tests::assert_well_formed;

#[test]
fn documents_have_the_elements_that_programs_parse() {
    let document = xml::list(&captured::jobs(), &[], &options("-xml"), &utc());
    assert_well_formed(&document);
    let jobs: Vec<&str> = document
        .lines()
        .filter(|line| line.contains("<JB_job_number>"))
        .collect();
    assert_eq!(jobs.len(), 16);
    for expected in [
        r##"    <job_list state="running">
      <JB_job_number>2</JB_job_number>
      <JAT_prio>0.26088</JAT_prio>
      <JB_name>arr</JB_name>
      <JB_owner>u1</JB_owner>
      <state>r</state>
      <JAT_start_time>2026-11-21T01:09:55</JAT_start_time>
      <queue_name>all.q@vm</queue_name>
      <slots>1</slots>
      <tasks>1</tasks>
    </job_list>
"##,
        r##"    <job_list state="pending">
      <JB_job_number>12</JB_job_number>
      <JAT_prio>0.26061</JAT_prio>
      <JB_name>arrp</JB_name>
      <JB_owner>u2</JB_owner>
      <state>qw</state>
      <JB_submission_time>2026-11-21T01:09:24</JB_submission_time>
      <queue_name></queue_name>
      <slots>1</slots>
      <tasks>5-10:1</tasks>
    </job_list>
"##,
        r##"    <job_list state="pending">
      <JB_job_number>7</JB_job_number>
      <JAT_prio>0.26061</JAT_prio>
      <JB_name>soft</JB_name>
      <JB_owner>u2</JB_owner>
      <state>qw</state>
      <JB_submission_time>2026-11-21T01:09:24</JB_submission_time>
      <queue_name></queue_name>
      <slots>1</slots>
    </job_list>
"##,
    ] {
        assert!(document.contains(expected), "{expected}in\n{document}");
    }
}

#[test]
fn a_document_without_jobs_has_both_lists() {
    let expected = r##"<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
  </queue_info>
  <job_info>
  </job_info>
</job_info>
"##;
    assert_eq!(xml::list(&[], &[], &options("-xml"), &utc()), expected);
}

#[test]
fn queues_hold_their_jobs_in_documents() {
    let document = xml::full(&captured::queues(), &captured::jobs(), &options("-f -xml"), &utc());
    assert_well_formed(&document);
    let expected = r##"      <name>sus.q@vm</name>
      <qtype>BIP</qtype>
      <slots_used>1</slots_used>
      <slots_resv>0</slots_resv>
      <slots_total>1</slots_total>
      <load_avg>5.51318</load_avg>
      <arch>lx-amd64</arch>
      <state>s</state>
      <job_list state="running">
        <JB_job_number>12</JB_job_number>
        <JAT_prio>0.26061</JAT_prio>
        <JB_name>arrp</JB_name>
        <JB_owner>u2</JB_owner>
        <state>tS</state>
        <JAT_start_time>2026-11-21T01:10:42</JAT_start_time>
        <slots>1</slots>
        <tasks>4</tasks>
      </job_list>
    </Queue-List>
    <Queue-List>
"##;
    assert!(document.contains(expected), "{document}");
}

#[test]
fn a_document_with_everything_keeps_the_order_of_elements() {
    let document = xml::list(&captured::jobs(), &[], &options("-ext -urg -pri -r -t -xml"), &utc());
    assert_well_formed(&document);
    let names = |text: &str| -> Vec<String> {
        let inner = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix('<')?.split(['>', ' ']).next());
        inner.map(str::to_owned).collect()
    };
    let expected = r##"    <job_list state="running">
      <JB_job_number>5</JB_job_number>
      <JAT_prio>0.26074</JAT_prio>
      <JAT_ntix>0.50000</JAT_ntix>
      <JB_nppri>0.49512</JB_nppri>
      <JB_nurg>0.02148</JB_nurg>
      <JB_rrcontr>1000</JB_rrcontr>
      <JB_wtcontr>30</JB_wtcontr>
      <JB_dlcontr>0</JB_dlcontr>
      <JB_priority>-10</JB_priority>
      <JB_name>longjobname_exceeding_ten</JB_name>
      <JB_owner>u1</JB_owner>
      <JB_project></JB_project>
      <JB_department>defaultdepartment</JB_department>
      <state>r</state>
      <JAT_start_time>2026-11-21T01:09:55</JAT_start_time>
      <cpu_usage>0.00000</cpu_usage>
      <mem_usage>0.00000</mem_usage>
      <io_usage>0.00004</io_usage>
      <tickets>0</tickets>
      <JB_override_tickets>0</JB_override_tickets>
      <JB_jobshare>0</JB_jobshare>
      <otickets>0</otickets>
      <ftickets>0</ftickets>
      <stickets>0</stickets>
      <JAT_share>0.00000</JAT_share>
      <queue_name>all.q@vm</queue_name>
      <master>MASTER</master>
      <slots>1</slots>
      <full_job_name>longjobname_exceeding_ten</full_job_name>
      <hard_request name="mem_free" resource_contribution="0.000000">1G</hard_request>
      <binding>NONE</binding>
    </job_list>
"##;
    let start = document
        .find("    <job_list state=\"running\">\n      <JB_job_number>5<")
        .unwrap();
    let end = start + document[start..].find("</job_list>\n").unwrap() + "</job_list>\n".len();
    assert_eq!(names(&document[start..end]), names(expected));
    for line in [
        "      <hard_request name=\"mem_free\" resource_contribution=\"0.000000\">1G</hard_request>",
        "      <requested_pe name=\"mpi\">2</requested_pe>",
        "      <granted_pe name=\"mpi\">2</granted_pe>",
        "      <soft_request name=\"lsa\">5</soft_request>",
        "      <hard_req_queue>sus.q</hard_req_queue>",
        "      <predecessor_jobs>1</predecessor_jobs>",
    ] {
        assert!(document.lines().any(|known| known == line), "{line}");
    }
}
