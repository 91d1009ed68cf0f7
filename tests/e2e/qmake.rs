//! `qmake` over the slots of a parallel job.

use crate::hosts::can_have_hosts;
use crate::slaves::MpiCluster;
use gridwright_tests::cell::available;
use std::path::Path;

/// Each of four lines waits until all four run.
const MAKEFILE: &str = "\
ALL = a b c d
all: $(ALL)
	@sort where.*
$(ALL):
	@uname -n >where.$@; until [ $$(ls where.* | wc -l) = 4 ]; do sleep 0.1; done
fail:
	@exit 3
sub:
	@$(MAKE) -s inner
inner:
	@echo inner of $(LEVEL) in $$(basename $$PWD) $(shell echo asked here)
";

#[test]
fn the_lines_of_a_make_run_in_all_slots_of_its_job() {
    if !can_have_hosts() || !available("make", Path::new("/usr/bin/make").exists()) {
        return;
    }
    for first_task in ["TRUE", "FALSE"] {
        let cluster = MpiCluster::new(&["h1", "h2"], &[("job_is_first_task", first_task)]);
        // A master that is no task takes a slot beside those of the tasks.
        let slots = ["qconf", "-mattr", "queue", "slots", "3", "all.q"];
        cluster.master.admin(&slots).ok();
        let script = format!(
            "cd \"$SGE_O_WORKDIR\" && mkdir -m 755 build && cd build || exit 1\n\
             cat >Makefile <<'END'\n{MAKEFILE}END\n\
             qmake -inherit --\n\
             echo status $?\n\
             qmake -inherit -- -s fail 2>/dev/null\n\
             echo status $?\n\
             qmake -inherit -- -s sub LEVEL=one\n\
             ls -d \"$TMPDIR\"/qmake.* 2>/dev/null"
        );
        assert_eq!(
            cluster.output("4", &script),
            "h1\nh1\nh2\nh2\nstatus 0\nstatus 2\ninner of one in build asked here\n",
            "job_is_first_task {first_task}"
        );
    }
}
