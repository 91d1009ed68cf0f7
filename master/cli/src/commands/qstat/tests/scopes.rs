//! What a job asks for with `-scope`, in every form that shows requests.

use super::details::detail_of;
use super::{options, utc};
use crate::commands::captured;
use crate::commands::qstat::shown::{JobLine, by_instance, running};
use crate::commands::qstat::{detail, detail_xml, list, xml};
use crate::output::xml::tests::assert_well_formed;
use proto::job::Requests;
use proto::request::ResourceList;

fn scoped(requests: &mut Requests) {
    let resources = |text: &str| ResourceList::parse(text).unwrap().into();
    requests.master = resources("memory=1G,io");
    requests.slaves = resources("memory=4G,gpu=1");
    requests.master_queues = vec!["io.q".to_owned()];
    requests.slave_queues = vec!["compute.q".to_owned(), "big.q".to_owned()];
}

#[test]
fn details_have_the_lines_of_open_cluster_scheduler() {
    let scoped_detail = detail_of(4, |spec| scoped(&mut spec.requests));
    let text = detail::render(&[scoped_detail], true, &utc());
    for expected in [
        "\nmaster_hard_resource_list:  memory=1G,io=TRUE\nslave_hard_resource_list:   memory=4G,gpu=1\n",
        "\nslave_hard_queue_list:      compute.q,big.q\n",
        // As in 8.1.9, which has it apart.
        "\nmaster hard queue_list:     io.q\n",
    ] {
        assert!(text.contains(expected), "{expected}in\n{text}");
    }
    let plain = detail::render(&[detail_of(4, |_| ())], true, &utc());
    assert!(!plain.contains("slave_") && !plain.contains("master_"), "{plain}");
}

#[test]
fn detailed_documents_have_a_set_for_each_scope() {
    let document = detail_xml::render(&[detail_of(4, |spec| scoped(&mut spec.requests))]);
    assert_well_formed(&document);
    let expected = r##"      <JB_request_set_list>
        <ulong_sublist>
          <JRS_scope>1</JRS_scope>
          <JRS_hard_resource_list>
            <qstat_l_requests>
              <CE_name>memory</CE_name>
              <CE_stringval>1G</CE_stringval>
            </qstat_l_requests>
            <qstat_l_requests>
              <CE_name>io</CE_name>
              <CE_stringval>TRUE</CE_stringval>
            </qstat_l_requests>
          </JRS_hard_resource_list>
        </ulong_sublist>
        <ulong_sublist>
          <JRS_scope>2</JRS_scope>
          <JRS_hard_resource_list>
            <qstat_l_requests>
              <CE_name>memory</CE_name>
              <CE_stringval>4G</CE_stringval>
            </qstat_l_requests>
            <qstat_l_requests>
              <CE_name>gpu</CE_name>
              <CE_stringval>1</CE_stringval>
            </qstat_l_requests>
          </JRS_hard_resource_list>
          <JRS_hard_queue_list>
            <destin_ident_list>
              <QR_name>compute.q</QR_name>
            </destin_ident_list>
            <destin_ident_list>
              <QR_name>big.q</QR_name>
            </destin_ident_list>
          </JRS_hard_queue_list>
        </ulong_sublist>
      </JB_request_set_list>
"##;
    assert!(document.contains(expected), "{expected}in\n{document}");
    let queues_alone = detail_xml::render(&[detail_of(4, |spec| spec.requests.slave_queues = vec!["a.q".to_owned()])]);
    assert_eq!(
        queues_alone.matches("<JRS_scope>").count(),
        1,
        "the master asks for nothing apart\n{queues_alone}"
    );
    assert!(queues_alone.contains("<JRS_scope>2</JRS_scope>"), "{queues_alone}");
    assert!(!detail_xml::render(&[detail_of(4, |_| ())]).contains("JB_request_set_list"));
}

#[test]
fn listings_show_requests_of_each_scope() {
    let mut rows = captured::jobs();
    rows.retain(|row| row.name == "par");
    scoped(&mut rows[0].requests);
    let text = list::render(&rows, &[], &options("-r"), &utc());
    let expected = r##"       Hard Resources:   
       Soft Resources:   
       Master Hard Resources: memory=1G
                              io
       Slave Hard Resources: memory=4G
                             gpu=1
       Master task hard requested queues: io.q
       Slave task hard requested queues: compute.q, big.q
"##;
    assert!(text.contains(expected), "{expected}in\n{text}");
    let document = xml::list(&rows, &[], &options("-xml -r"), &utc());
    assert_well_formed(&document);
    for expected in [
        "<master_hard_request name=\"memory\">1G</master_hard_request>",
        "<slave_hard_request name=\"gpu\">1</slave_hard_request>",
        "<master_hard_req_queue>io.q</master_hard_req_queue>",
        "<slave_hard_req_queue>big.q</slave_hard_req_queue>",
    ] {
        assert!(document.contains(expected), "{expected} in\n{document}");
    }
}

#[test]
fn a_master_that_is_no_task_is_shown_where_it_is() {
    let mut jobs = captured::jobs();
    let task = &mut jobs.iter_mut().find(|job| job.number.0 == 4).unwrap().tasks[0];
    let mut elsewhere = task.granted[0].clone();
    task.granted[0].slots = 0;
    elsewhere.instance.queue = "compute.q".into();
    task.granted.push(elsewhere);
    jobs.retain(|job| job.number.0 == 4);
    let told = |line: &JobLine<'_>| {
        let instance = line.instance.map(ToString::to_string).unwrap_or_default();
        format!("{instance} {:?} {}", line.role, line.slots)
    };
    let lines: Vec<String> = running(&jobs, true).iter().map(told).collect();
    assert_eq!(
        lines,
        ["all.q@vm Master 1", "compute.q@vm Slave 1", "compute.q@vm Slave 1"]
    );
    let slots: Vec<u32> = by_instance(&jobs, false)
        .values()
        .flatten()
        .map(|line| line.slots)
        .collect();
    assert_eq!(slots, [1, 2], "it takes a slot of its queue");
    assert_eq!(running(&jobs, false)[0].slots, 2, "which is none of the job's");
}
