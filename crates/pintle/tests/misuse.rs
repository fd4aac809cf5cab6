//! What must not compile: the compiler says so, in exactly these words.

#[test]
fn whoever_holds_it_wrongly_is_told_by_the_compiler() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/misuse/*.rs");
}
