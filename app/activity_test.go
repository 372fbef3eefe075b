package app

import (
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/telemetry"
)

// TestQuarantineIsNoted: what is held back is noted once, when it begins to be and when it ends.
func TestQuarantineIsNoted(t *testing.T) {
	changes, held := &admin.Changes{}, 0
	hold := noteQuarantine(func(quarantined map[string]bool, _ map[string]time.Duration) { held = len(quarantined) }, changes)
	for _, now := range []map[string]bool{nil, {"b": true, "a": true}, {"a": true, "b": true}, {"b": true, "c": true}, {}} {
		if hold(now, nil); held != len(now) {
			t.Errorf("%d tools are held back, of %v", held, now)
		}
	}
	want := "quarantined a, b; quarantined c; released a; released b, c"
	if got := texts(changes); got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}

// TestReloadIsNoted: with the files that have changed, without their folders, or with the first fault.
func TestReloadIsNoted(t *testing.T) {
	changes := &admin.Changes{}
	digest := strings.Repeat("ab", 32)
	for _, e := range []reload.Event{
		{Kind: reload.Reloaded, Digest: digest, Files: []string{"/etc/callgate/policy.csv", "tools.yaml"}}, {Kind: reload.Recovered, Digest: digest}, {Kind: reload.RestartRequired, Keys: []string{"auth.mode"}},
	} {
		noteReload(changes, &e)
	}
	want := "reloaded configuration abababababab is in force: policy.csv, tools.yaml; recovered configuration abababababab is again what the files say; restart a restart is needed for auth.mode"
	if got := texts(changes); got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}

// TestObserversCount: what the metrics count of outcomes and charges is counted for the pages too.
func TestObserversCount(t *testing.T) {
	metrics, recent := telemetry.New(), admin.NewRecent(nil)
	observer{metrics, recent}.Ended("result", time.Second, "", "")
	charges := budgetObserver{metrics, recent}
	charges.Charged(budget.Amount{Tokens: 5, Micros: 10}, "EUR")
	charges.Spent("one", budget.Amount{Tokens: 5, Micros: 10}, false)
	charges.Spent("two", budget.Amount{Tokens: 5, Micros: 10}, false)
	if total := recent.Activity("1h").Total; total.Ran.Count != 1 || total.Tokens != 5 {
		t.Errorf("%+v", total)
	}
}

func texts(changes *admin.Changes) string {
	var list []string
	for _, c := range changes.Since(time.Time{}) {
		list = append(list, c.What+" "+c.Text)
	}
	return strings.Join(list, "; ")
}
