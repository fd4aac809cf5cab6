//! A tool cannot run without its permit: the compiler says so, in exactly these words.

#[test]
fn law_1_no_tool_runs_without_a_permit_from_the_dispatcher() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/permit/*.rs");
}
