package gateway_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/redistest"
)

// TestMain spoils the pipeline for .ci/mutate, which is to see that a test fails then:
// CALLGATE_MUTANT is one of the mutants, or list, which prints them.
func TestMain(m *testing.M) {
	switch mutant := os.Getenv("CALLGATE_MUTANT"); mutant {
	case "":
	case "list":
		for _, mutant := range gateway.Mutants() {
			fmt.Println(mutant)
		}
		os.Exit(0)
	default:
		if err := gateway.Mutate(mutant); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	redistest.Main(m)
}
