//! Once, also when a process dies behind the run.

use pintle::prelude::*;
use pintle::{CallFolder, CallJournal, CallKey, CallStanding, OpenCall};

use crate::host::{TOOLS, Till, memory, refund};

fn open(folder: &std::path::Path) -> Pintle {
    let stores = Stores::from(memory()).with_calls(CallFolder::open(folder).unwrap());
    Pintle::open(stores, &TOOLS).unwrap()
}

fn the_turn(pintle: &Pintle, id: &TurnId) -> Turn {
    pintle.tenant("default").unwrap().turn("support", "s", id.clone())
}

/// Hangs until it is dropped, as a tool whose process is killed.
struct Hangs(tokio::sync::Notify);

impl Executor for Hangs {
    type Error = String;

    fn runs(&self, tool: &str) -> bool {
        tool == "refund"
    }

    async fn execute(&self, _permit: Permit, _cancel: &Cancel) -> Result<Output, String> {
        self.0.notify_one();
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_call_that_ran_gives_its_result_again_and_never_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let (id, till) = (TurnId::fresh(), Till::default());
    let first = the_turn(&open(folder.path()), &id).call(refund("c1"), &till).await.unwrap();
    assert!(!first.kept);
    let pintle = open(folder.path());
    let again = the_turn(&pintle, &id).call(refund("c1"), &till).await.unwrap();
    assert_eq!((again.kept, again.output.clone(), till.runs()), (true, first.output, 1));
    // Other arguments are no other call, but another id, another turn or another tenant is.
    let again = the_turn(&pintle, &id).call(Call::new("c1", "refund", [("amount", 1_000_000)]), &till).await.unwrap();
    assert_eq!((again.kept, till.runs()), (true, 1));
    let _done = the_turn(&pintle, &id).call(refund("c2"), &till).await.unwrap();
    let _done = the_turn(&pintle, &TurnId::fresh()).call(refund("c1"), &till).await.unwrap();
    let acme = pintle.add_tenant("acme").unwrap().turn("support", "s", id);
    let _done = acme.call(refund("c1"), &till).await.unwrap();
    assert_eq!(till.runs(), 4);
}

#[tokio::test]
async fn a_call_whose_process_died_behind_its_use_is_never_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (id, hangs, till) = (TurnId::fresh(), Hangs(tokio::sync::Notify::new()), Till::default());
    let pintle = open(folder.path());
    {
        let turn = the_turn(&pintle, &id);
        let dies = turn.call(refund("c1"), &hangs);
        tokio::pin!(dies);
        tokio::select! {
            came = &mut dies => panic!("{came:?}"),
            () = hangs.0.notified() => {}
        }
        // While it runs nobody else may have it, in this process or in another.
        let Err(Stop::Refused(other)) = the_turn(&pintle, &id).call(refund("c1"), &till).await else {
            panic!("it ran")
        };
        assert_eq!(
            (other.text.as_str(), other.ran),
            ("the tool did not run here: this call is running already", false)
        );
    }
    let Err(Stop::Refused(lost)) = the_turn(&open(folder.path()), &id).call(refund("c1"), &till).await else {
        panic!("it ran");
    };
    assert_eq!((lost.text.as_str(), lost.ran), ("outcome unknown: the process ended while the tool ran", true));
    assert_eq!(till.runs(), 0);
}

#[tokio::test]
async fn a_refused_call_can_be_made_again_and_a_result_that_was_cut_off_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let pintle = open(folder.path());
    pintle.hook("no", "refund", |_: &PreToolUse| Verdict::deny("no")).unwrap();
    let (id, till) = (TurnId::fresh(), Till::default());
    assert!(matches!(the_turn(&pintle, &id).call(refund("c1"), &till).await, Err(Stop::Refused(_))));
    let _done = the_turn(&open(folder.path()), &id).call(refund("c1"), &till).await.unwrap();
    assert_eq!(till.runs(), 1);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 3]).unwrap();
    let Err(Stop::Refused(lost)) = the_turn(&open(folder.path()), &id).call(refund("c1"), &till).await else {
        panic!("it ran");
    };
    assert!(lost.ran && till.runs() == 1);
    // Also where the crash cut a letter in two.
    std::fs::write(&file, b"used\n{\"for_llm\":\"Gr\xc3").unwrap();
    let Err(Stop::Refused(lost)) = the_turn(&open(folder.path()), &id).call(refund("c1"), &till).await else {
        panic!("it ran");
    };
    assert!(lost.ran && till.runs() == 1, "{lost:?}");
}

#[tokio::test]
async fn nothing_runs_that_a_journal_cannot_take() {
    struct Full;

    impl CallJournal for Full {
        fn open(&self, _key: &CallKey) -> Result<CallStanding, pintle::store::StoreError> {
            Ok(CallStanding::Here(Box::new(Full)))
        }
    }

    impl OpenCall for Full {
        fn used(&mut self) -> Result<(), pintle::store::StoreError> {
            Err(pintle::store::StoreError::Unavailable("the disk is full".into()))
        }

        fn finished(&mut self, _output: &Output) -> Result<(), pintle::store::StoreError> {
            panic!("nothing ran");
        }
    }

    let pintle = Pintle::open(Stores::from(memory()).with_calls(Full), &TOOLS).unwrap();
    let till = Till::default();
    let Err(Stop::Refused(refusal)) = the_turn(&pintle, &TurnId::fresh()).call(refund("c1"), &till).await else {
        panic!("it ran");
    };
    assert_eq!(
        (refusal.text.as_str(), till.runs()),
        ("the tool did not run: the journal of calls could not be written", 0)
    );
}
