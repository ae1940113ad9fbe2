// Package apitest tests the custom resources of the api module on a real API server: what is accepted and what is refused
// with which words, defaults, status, columns and `kubectl explain`. The api module itself stays free of the dependencies
// that this takes.
//
// It has no code but tests and is imported by nobody.
//
//	go test ./internal/apitest            # check
//	go test ./internal/apitest -update    # rewrite the golden output of kubectl
package apitest
