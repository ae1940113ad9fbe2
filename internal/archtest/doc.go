// Package archtest holds what the architecture promises and a compiler does not check: who may import whom, that every
// package says what it is for, that no file outgrows its readers, that every dependency is explained, and which
// third-party modules are linked into the binary.
//
// It has no code but tests, imports nothing of this repository and is imported by nobody. A test that fails says what to
// change; where the change is right and the rule is wrong, change the table here in the same commit and say why.
//
//	go test ./internal/archtest            # check
//	go test ./internal/archtest -update    # rewrite the golden list of linked modules
package archtest
