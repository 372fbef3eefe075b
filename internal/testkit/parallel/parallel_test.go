package parallel

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

func TestWaiting(t *testing.T) {
	limit := flag.Lookup("test.parallel")
	before := limit.Value.String()
	t.Cleanup(func() {
		if err := limit.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
	Waiting()
	if got, want := limit.Value.String(), strconv.Itoa(2*runtime.GOMAXPROCS(0)); got != want {
		t.Errorf("%s parallel tests, expected %s", got, want)
	}
}
