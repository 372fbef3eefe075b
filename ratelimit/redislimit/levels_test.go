package redislimit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
)

// Levels are not made up: where a key holds something else, or the limiter is not connected,
// there are none.
func TestLevelsThatCannotBeRead(t *testing.T) {
	s := redistest.Start(t)
	o := optionsFor(s.Address())
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, redislimit.Patient)
	opened(t, r, warnings, err)
	limits := &ratelimit.Limits{Tools: map[string]ratelimit.Budget{"web.search": limittest.Budget("5/s", 20)}}
	limittest.Admitted(t, r, limits, limittest.Alpha).Release()
	levels := func() (ratelimit.LevelPage, error) {
		return r.Levels(context.Background(), limits, ratelimit.LevelQuery{Count: 9})
	}
	if page, err := levels(); err != nil || len(page.Levels) != 1 || page.Levels[0].Left < 19 {
		t.Fatalf("found %+v, %v", page, err)
	}
	client := s.Client()
	defer client.Close()
	keys, err := client.Keys(context.Background(), "*web.search*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	command(t, s, "set", keys[0], "1 2 many")
	if page, err := levels(); err == nil {
		t.Errorf("of a foreign value: %+v", page)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if page, err := levels(); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("of a limiter that is closed: %+v, %v", page, err)
	}
}
