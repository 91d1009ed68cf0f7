//! Requests for load values: shared or per slot, scaled and adjusted, and with a consumable.

use super::*;

#[test]
fn numeric_load_is_shared_by_all_slots_and_a_queue_limit_is_not() {
    // ALGORITHMS.md section 3.2: 8G of load serve two slots of 3G; a limit of 4G serves any number.
    let lab = lab("host a | mem_free=8G
        pe smp 99 $pe_slots
        queue all.q a slots=9 h_vmem=4G");
    assert_eq!(
        verdict(&lab, "-pe smp 2 -l mem_free=3G", Mode::Now),
        Vec::<String>::new()
    );
    let refused = verdict(&lab, "-pe smp 4 -l mem_free=3G", Mode::Now);
    assert_eq!(refused, ["cannot run in PE \"smp\" because it only offers 2 slots"]);
    assert_eq!(verdict(&lab, "-pe smp 9 -l h_vmem=3G", Mode::Now), Vec::<String>::new());
    assert_eq!(
        verdict(&lab, "-l h_vmem=5G", Mode::Now),
        ["(-l h_vmem=5G) cannot run in queue \"all.q@a\" because it offers only qf:h_vmem=4.000G"]
    );
}

#[test]
fn load_is_asked_for_once_where_the_configuration_says_so() {
    // As a real 8.1.9 does: `-l mem_free=3G -pe smp 4` on hosts with 8G. Consumables are asked for
    // by the slot all the same.
    let lab = lab("complex mem mem MEMORY <= YES YES 0 0
        conf params LOAD_PER_SLOT=FALSE
        host a mem=8G virtual_free=7G | mem_free=8G mem=8G virtual_free=8G
        pe smp 99 $pe_slots
        queue all.q a slots=9");
    for request in ["mem_free=3G", "mem_free=8G", "virtual_free=7G", "mem=2G"] {
        assert_eq!(
            verdict(&lab, &format!("-pe smp 4 -l {request}"), Mode::Now),
            Vec::<String>::new(),
            "{request}"
        );
    }
    for (request, said) in [
        (
            "mem_free=9G",
            "cannot run at host \"a\" because it offers only hl:mem_free=8.000G",
        ),
        (
            "virtual_free=8G",
            "cannot run at host \"a\" because it offers only hf:virtual_free=7.000G",
        ),
        ("mem=3G", "cannot run in PE \"smp\" because it only offers 2 slots"),
    ] {
        let refused = verdict(&lab, &format!("-pe smp 4 -l {request}"), Mode::Now).join("; ");
        assert!(refused.contains(said), "{request}: {refused}");
    }
}

#[test]
fn numbers_that_describe_a_host_are_asked_for_once_whatever_the_slots() {
    let lab = lab("complex swap_total st MEMORY <= YES YES 0 0
        host a swap_total=8G mem_total=48G | m_core=2 m_socket=1 m_thread=4 num_proc=4 mem_total=64G swap_total=8G mem_free=64G
        pe smp 99 $pe_slots
        queue all.q a slots=9");
    for request in [
        "m_core=2",
        "m_socket=1",
        "m_thread=4",
        "num_proc=4",
        "mem_total=48G",
        "swap_total=2G",
        "mem_free=16G",
    ] {
        assert_eq!(
            verdict(&lab, &format!("-pe smp 4 -l {request}"), Mode::Now),
            Vec::<String>::new(),
            "{request}"
        );
    }
    let offers = |slots: u32| format!("cannot run in PE \"smp\" because it only offers {slots} slots");
    let at_host =
        |asked: &str, has: &str| format!("(-l {asked}) cannot run at host \"a\" because it offers only {has}");
    for (request, said) in [
        ("m_core=3", vec![at_host("m_core=3", "hl:m_core=2.000000"), offers(0)]),
        (
            "mem_total=49G",
            vec![at_host("mem_total=49G", "hf:mem_total=48.000G"), offers(0)],
        ),
        ("swap_total=3G", vec![offers(2)]),
        ("mem_free=17G", vec![offers(3)]),
    ] {
        assert_eq!(
            verdict(&lab, &format!("-pe smp 4 -l {request}"), Mode::Now),
            said,
            "{request}"
        );
    }
}

#[test]
fn a_consumable_with_load_offers_the_lesser_of_both() {
    // ALGORITHMS.md section 4.2: capacity 1024M, booked 400M.
    for (load, left) in [("300M", "hl:mem=300.000M"), ("900M", "hc:mem=624.000M")] {
        let lab = lab(&format!(
            "complex mem mem MEMORY <= YES YES 0 0
             host a mem=1024M
             queue all.q a slots=9
             job 1 -l mem=400M
             pass
             wait 1
             load a mem={load}"
        ));
        assert_eq!(of_host(&lab, "a", "mem"), left);
    }
}

#[test]
fn scaled_and_adjusted_loads_say_so() {
    // ALGORITHMS.md section 6.2: 2 slots, 150 s ago, 8 processors, 0.40 reported, 0.50 for each
    // slot.
    let mut lab = lab("host a | num_proc=8 np_load_avg=0.40
        pe smp 99 $pe_slots
        queue all.q a slots=9
        job 1 -pe smp 2
        pass");
    assert_eq!(of_host(&lab, "a", "np_load_avg"), "hL:np_load_avg=0.525000");
    // The state's own clock is that of its last event.
    lab.wait(150);
    lab.line("job 2 -h");
    assert_eq!(of_host(&lab, "a", "np_load_avg"), "hL:np_load_avg=0.483125");
    lab.wait(600);
    lab.line("job 3 -h");
    assert_eq!(of_host(&lab, "a", "np_load_avg"), "hl:np_load_avg=0.400000");
}

#[test]
fn a_factor_of_the_host_comes_before_what_jobs_add() {
    // ALGORITHMS.md sections 6.1 and 6.2.
    let mut lab = lab("conf job_load_adjustments np_load_avg=0.50,mem_free=200M,net=10
        complex net net DOUBLE >= YES NO 0 0
        host a | num_proc=8 np_load_avg=0.40 mem_free=8G
        host b
        load global net=5
        scale a np_load_avg=2
        pe smp 99 $pe_slots
        pe two 99 2
        queue all.q a,b slots=9 pe_list=smp,two");
    assert_eq!(of_host(&lab, "a", "np_load_avg"), "hL:np_load_avg=0.800000");
    assert_eq!(of_host(&lab, "a", "mem_free"), "hl:mem_free=8.000G");
    assert_eq!(of_host(&lab, "global", "net"), "gl:net=5.000000");
    lab.line("job 1 -pe smp 2 -q *@a");
    lab.line("pass");
    // 8192M - 2 * 200M; 2 * 0.40 + 2 * 0.50 / 8; and once, not twice, for the cluster: it counts
    // instances.
    assert_eq!(of_host(&lab, "a", "mem_free"), "hL:mem_free=7.609G");
    assert_eq!(of_host(&lab, "a", "np_load_avg"), "hL:np_load_avg=0.925000");
    assert_eq!(of_host(&lab, "global", "net"), "gL:net=15.000000");
    lab.line("job 2 -pe two 4");
    lab.line("pass");
    assert_eq!(of_host(&lab, "global", "net"), "gL:net=35.000000");
}
