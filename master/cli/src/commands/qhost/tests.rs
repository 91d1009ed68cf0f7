use super::{HostListing, Parts, QHOST, text, xml};
use crate::commands::captured;
use crate::output::time::Clock;
use crate::output::xml::escape;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proto::amount::Type;
use proto::id::HostName;

const PLAIN: Parts = Parts {
    queues: false,
    jobs: false,
    topology: true,
    named_resources: false,
};

fn utc() -> Clock {
    Clock::new(TimeZone::UTC)
}

fn shown(parts: Parts) -> HostListing {
    HostListing {
        hosts: captured::hosts(),
        queues: if parts.queues { captured::queues() } else { Vec::new() },
        jobs: if parts.jobs { captured::jobs() } else { Vec::new() },
    }
}

fn table(parts: Parts) -> String {
    text::render(&shown(parts), parts, &utc())
}

#[test]
fn queues_and_jobs_stand_below_their_host() {
    let both = Parts {
        queues: true,
        jobs: true,
        ..PLAIN
    };
    let expected = r##"HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
----------------------------------------------------------------------------------------------
global                  -               -    -    -    -     -       -       -       -       -
vm                      lx-amd64        2    1    2    2  5.51   23.5G    1.4G     0.0     0.0
   all.q                BIP   0/8/8         
         1 0.25028 run1       u1           s     11/21/2026 01:09:55 MASTER        
         2 0.26088 arr        u1           r     11/21/2026 01:09:55 MASTER 1
         4 0.75000 par        u1           r     11/21/2026 01:09:24 MASTER        
                                                                     SLAVE         
         5 0.26074 longjobnam u1           r     11/21/2026 01:09:55 MASTER        
        12 0.26061 arrp       u2           r     11/21/2026 01:09:55 MASTER 1
        12 0.26061 arrp       u2           r     11/21/2026 01:09:58 MASTER 2
        12 0.26061 arrp       u2           r     11/21/2026 01:09:58 MASTER 3
   sus.q                BIP   0/1/1         s
        12 0.26061 arrp       u2           tS    11/21/2026 01:10:42 MASTER 4
   dis.q                IP    0/0/3         d
"##;
    assert_eq!(table(both), expected);
    let expected = r##"HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
----------------------------------------------------------------------------------------------
global                  -               -    -    -    -     -       -       -       -       -
vm                      lx-amd64        2    1    2    2  5.51   23.5G    1.4G     0.0     0.0
   job-ID  prior   name       user         state submit/start at     queue      master ja-task-ID 
   ----------------------------------------------------------------------------------------------
         1 0.25028 run1       u1           s     11/21/2026 01:09:55 all.q@vm   MASTER        
         2 0.26088 arr        u1           r     11/21/2026 01:09:55 all.q@vm   MASTER 1
         4 0.75000 par        u1           r     11/21/2026 01:09:24 all.q@vm   MASTER        
                                                                     all.q@vm   SLAVE         
         5 0.26074 longjobnam u1           r     11/21/2026 01:09:55 all.q@vm   MASTER        
        12 0.26061 arrp       u2           r     11/21/2026 01:09:55 all.q@vm   MASTER 1
        12 0.26061 arrp       u2           r     11/21/2026 01:09:58 all.q@vm   MASTER 2
        12 0.26061 arrp       u2           r     11/21/2026 01:09:58 all.q@vm   MASTER 3
        12 0.26061 arrp       u2           tS    11/21/2026 01:10:42 sus.q@vm   MASTER 4
"##;
    assert_eq!(table(Parts { jobs: true, ..PLAIN }), expected);
    let expected = r##"HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
----------------------------------------------------------------------------------------------
global                  -               -    -    -    -     -       -       -       -       -
vm                      lx-amd64        2    1    2    2  5.51   23.5G    1.4G     0.0     0.0
   all.q                BIP   0/8/8         
   sus.q                BIP   0/1/1         s
   dis.q                IP    0/0/3         d
"##;
    assert_eq!(table(Parts { queues: true, ..PLAIN }), expected);
}

#[test]
fn a_job_names_its_queue_twice_where_queues_are_not_shown() {
    let [alone, below] = [false, true].map(|queues| {
        let parts = Parts {
            queues,
            jobs: true,
            ..PLAIN
        };
        xml::render(&shown(parts), parts)
    });
    let element = "name='start_time'>1795223395</jobvalue>\n   <jobvalue jobid='1' name='queue_name'>all.q@vm</jobvalue>\n   \
                   <jobvalue jobid='1' name='pe_master'>MASTER</jobvalue>\n";
    assert!(alone.contains(element), "{alone}");
    assert!(!below.contains("queue_name"), "{below}");
}

#[test]
fn users_are_named_to_see_their_jobs() {
    for (line, expected) in [("-u u1", true), ("-j", true), ("-q -u u1", true), ("-q", false)] {
        let parsed = QHOST
            .parse(line.split_whitespace().map(str::to_owned).collect())
            .unwrap();
        assert_eq!(Parts::from_command_line(&parsed).jobs, expected, "{line}");
    }
}

#[test]
fn nothing_is_printed_without_hosts() {
    assert_eq!(text::render(&HostListing::default(), PLAIN, &utc()), "");
}

#[test]
fn topology_is_left_out_on_request() {
    let expected = "\
HOSTNAME                ARCH         NCPU  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
-------------------------------------------------------------------------------
global                  -               -     -       -       -       -       -
vm                      lx-amd64        2  5.51   23.5G    1.4G     0.0     0.0
";
    assert_eq!(
        table(Parts {
            topology: false,
            ..PLAIN
        }),
        expected
    );
}

#[test]
fn resources_are_listed_and_labelled_where_they_were_named() {
    let mut shown = shown(PLAIN);
    shown.hosts[1].resources = vec![
        captured::resource("load_avg", Type::Double, ('h', 'l'), 6_986_816),
        captured::resource("num_proc", Type::Int, ('h', 'l'), 2),
    ];
    let all = text::render(&shown, PLAIN, &utc());
    assert!(
        all.ends_with("\n   hl:load_avg=6.986816\n   hl:num_proc=2.000000\n"),
        "{all}"
    );
    let named = text::render(
        &shown,
        Parts {
            named_resources: true,
            ..PLAIN
        },
        &utc(),
    );
    let expected = "\n    Host Resource(s):      hl:load_avg=6.986816\n   hl:num_proc=2.000000\n";
    assert!(named.ends_with(expected), "{named}");
    let document = xml::render(&shown, PLAIN);
    assert!(document.contains("   <resourcevalue name='num_proc' dominance='hl'>2.000000</resourcevalue>\n </host>\n"));
}

#[test]
fn the_free_ids_of_a_resource_map_stand_behind_their_number() {
    let mut shown = shown(PLAIN);
    let mut map = captured::resource("gpu", Type::RsMap, ('h', 'c'), 2);
    map.free_ids = Some(["gpu0", "gpu3"].map(str::to_owned).to_vec());
    shown.hosts[1].resources = vec![map];
    let all = text::render(&shown, PLAIN, &utc());
    assert!(all.ends_with("\n   hc:gpu=2.000000 (gpu0 gpu3)\n"), "{all}");
    let document = xml::render(&shown, PLAIN);
    let expected = "<resourcevalue name='gpu' dominance='hc' free_ids='gpu0 gpu3'>2.000000</resourcevalue>";
    assert!(document.contains(expected), "{document}");
}

/// `qhost -q -j -xml` of the captures, up to the first job.
const DOCUMENT_HEAD: &str = r##"<?xml version='1.0'?>
<qhost xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qhost/qhost.xsd">
 <host name='global'>
   <hostvalue name='arch_string'>-</hostvalue>
   <hostvalue name='num_proc'>-</hostvalue>
   <hostvalue name='m_socket'>-</hostvalue>
   <hostvalue name='m_core'>-</hostvalue>
   <hostvalue name='m_thread'>-</hostvalue>
   <hostvalue name='load_avg'>-</hostvalue>
   <hostvalue name='mem_total'>-</hostvalue>
   <hostvalue name='mem_used'>-</hostvalue>
   <hostvalue name='swap_total'>-</hostvalue>
   <hostvalue name='swap_used'>-</hostvalue>
 </host>
 <host name='vm'>
   <hostvalue name='arch_string'>lx-amd64</hostvalue>
   <hostvalue name='num_proc'>2</hostvalue>
   <hostvalue name='m_socket'>1</hostvalue>
   <hostvalue name='m_core'>2</hostvalue>
   <hostvalue name='m_thread'>2</hostvalue>
   <hostvalue name='load_avg'>5.51</hostvalue>
   <hostvalue name='mem_total'>23.5G</hostvalue>
   <hostvalue name='mem_used'>1.4G</hostvalue>
   <hostvalue name='swap_total'>0.0</hostvalue>
   <hostvalue name='swap_used'>0.0</hostvalue>
 <queue name='all.q'>
   <queuevalue qname='all.q' name='qtype_string'>BIP</queuevalue>
   <queuevalue qname='all.q' name='slots_used'>8</queuevalue>
   <queuevalue qname='all.q' name='slots'>8</queuevalue>
   <queuevalue qname='all.q' name='slots_resv'>0</queuevalue>
   <queuevalue qname='all.q' name='state_string'></queuevalue>
 </queue>
 <job name='1'>
   <jobvalue jobid='1' name='priority'>'0.250278'</jobvalue>
   <jobvalue jobid='1' name='qinstance_name'>all.q@vm</jobvalue>
   <jobvalue jobid='1' name='job_name'>run1</jobvalue>
   <jobvalue jobid='1' name='job_owner'>u1</jobvalue>
   <jobvalue jobid='1' name='job_state'>s</jobvalue>
   <jobvalue jobid='1' name='start_time'>1795223395</jobvalue>
   <jobvalue jobid='1' name='pe_master'>MASTER</jobvalue>
 </job>
"##;

/// The same from the second queue on.
const DOCUMENT_TAIL: &str = r##" <queue name='sus.q'>
   <queuevalue qname='sus.q' name='qtype_string'>BIP</queuevalue>
   <queuevalue qname='sus.q' name='slots_used'>1</queuevalue>
   <queuevalue qname='sus.q' name='slots'>1</queuevalue>
   <queuevalue qname='sus.q' name='slots_resv'>0</queuevalue>
   <queuevalue qname='sus.q' name='state_string'>s</queuevalue>
 </queue>
 <job name='12'>
   <jobvalue jobid='12' name='priority'>'0.260606'</jobvalue>
   <jobvalue jobid='12' name='qinstance_name'>sus.q@vm</jobvalue>
   <jobvalue jobid='12' name='job_name'>arrp</jobvalue>
   <jobvalue jobid='12' name='job_owner'>u2</jobvalue>
   <jobvalue jobid='12' name='job_state'>tS</jobvalue>
   <jobvalue jobid='12' name='start_time'>1795223442</jobvalue>
   <jobvalue jobid='12' name='pe_master'>MASTER</jobvalue>
   <jobvalue jobid='12' name='taskid'>4</jobvalue>
 </job>
 <queue name='dis.q'>
   <queuevalue qname='dis.q' name='qtype_string'>IP</queuevalue>
   <queuevalue qname='dis.q' name='slots_used'>0</queuevalue>
   <queuevalue qname='dis.q' name='slots'>3</queuevalue>
   <queuevalue qname='dis.q' name='slots_resv'>0</queuevalue>
   <queuevalue qname='dis.q' name='state_string'>d</queuevalue>
 </queue>
 </host>
</qhost>
"##;

#[test]
fn documents_are_those_of_8_1_9() {
    let both = Parts {
        queues: true,
        jobs: true,
        ..PLAIN
    };
    let document = xml::render(&shown(both), both);
    assert!(document.starts_with(DOCUMENT_HEAD), "{document}");
    assert!(document.ends_with(DOCUMENT_TAIL), "{document}");
    assert!(document.contains("   <jobvalue jobid='12' name='taskid'>3</jobvalue>\n"));
}

#[test]
fn help_names_every_option() {
    let help = QHOST.help();
    assert!(
        ["-F", "-h", "-j", "-l", "-ncb", "-q", "-u", "-xml"]
            .iter()
            .all(|option| help.contains(option))
    );
}

proptest! {
    #[test]
    fn no_host_and_no_load_value_panics(name in ".*", value in ".*", number: i64) {
        let parts = Parts { queues: true, jobs: true, ..PLAIN };
        let mut shown = shown(parts);
        shown.hosts[1].host = HostName::new(&name);
        for text in shown.hosts[1].load.values_mut() {
            text.clone_from(&value);
        }
        shown.hosts[1].resources = vec![captured::resource(&name, Type::Memory, ('h', 'l'), number)];
        let _ = text::render(&shown, parts, &utc());
        prop_assert!(xml::render(&shown, parts).contains(&escape(&name.to_ascii_lowercase())));
    }
}
