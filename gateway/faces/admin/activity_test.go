package admin_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// TestActivity: each event is in the interval in which it happened, in every span that reaches so far back, until it
// is older than that.
func TestActivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1_800_000_000+rapid.Int64Range(0, 1000).Draw(t, "begin"), 0)
		now := begin
		recent := admin.NewRecent(func() time.Time { return now })
		refused := func(code refusal.Code) gateway.Judgement {
			return gateway.Judgement{Verdict: gateway.VerdictRefused, Refusal: refusal.New(code, "")}
		}
		kinds := map[string]gateway.Judgement{
			"allowed": {Verdict: gateway.VerdictCall}, "text": {Verdict: gateway.VerdictText}, "asked": refused(refusal.ApprovalRequired),
			"refused": refused(refusal.UnknownTool), "beside": {Verdict: gateway.VerdictRefused},
		}
		type event struct {
			at   time.Time
			kind string
		}
		var events []event
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 9, 31, 600, 5000, 90_000}).Draw(t, "later")) * time.Second)
			kind := rapid.SampledFrom([]string{"allowed", "text", "asked", "refused", "beside", "ran", "charged"}).Draw(t, "kind")
			switch kind {
			case "ran":
				recent.Ran(time.Second)
			case "charged":
				recent.Charged(7, 2_500_000, "EUR")
			default:
				recent.Keep(kinds[kind])
			}
			events = append(events, event{now, kind})
		}
		for _, span := range admin.Spans() {
			a := recent.Activity(span)
			length := time.Duration(a.Seconds) * time.Second
			end := a.Intervals[len(a.Intervals)-1].Start.Add(length)
			if d, err := time.ParseDuration(span); err != nil || end.Sub(a.Intervals[0].Start) != d || now.Before(end.Add(-length)) || !now.Before(end) {
				t.Fatalf("%s is from %s to %s", span, a.Intervals[0].Start, end)
			}
			total := map[string]int{}
			for i := range a.Intervals {
				got := &a.Intervals[i]
				want := map[string]int{}
				for _, e := range events {
					if !e.at.Before(got.Start) && e.at.Before(got.Start.Add(length)) {
						want[e.kind]++
						total[e.kind]++
					}
				}
				if fmt.Sprint(counted(got)) != fmt.Sprint(countedOf(want)) {
					t.Fatalf("%s from %s: %v, expected %v", span, got.Start, counted(got), countedOf(want))
				}
			}
			if fmt.Sprint(counted(&a.Total)) != fmt.Sprint(countedOf(total)) {
				t.Fatalf("%s in all: %v, expected %v", span, counted(&a.Total), countedOf(total))
			}
		}
	})
}

func counted(i *admin.Interval) []any {
	return []any{i.Allowed, i.Asked, i.Refused, i.Text, i.Codes[refusal.UnknownTool], i.Codes[refusal.ApprovalRequired], i.Judged.Count, i.Ran.Count, i.Tokens, i.Money["EUR"]}
}

func countedOf(n map[string]int) []any {
	money := ""
	if n["charged"] > 0 {
		money = fmt.Sprintf("%d.%d0", n["charged"]*25/10, n["charged"]*25%10)
	}
	return []any{n["allowed"], n["asked"], n["refused"] + n["beside"], n["text"], n["refused"], n["asked"], n["allowed"] + n["asked"] + n["refused"] + n["beside"] + n["text"], n["ran"], int64(7 * n["charged"]), money}
}

// TestQuantiles: they are off by two fifths at most.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recent := admin.NewRecent(func() time.Time { return time.Unix(1_800_000_000, 0) })
		lengths := rapid.SliceOfN(rapid.Int64Range(1, 600_000_000), 1, 200).Draw(t, "micros")
		for _, n := range lengths {
			recent.Ran(time.Duration(n) * time.Microsecond)
		}
		slices.Sort(lengths)
		got := recent.Activity("15m").Total.Ran
		for part, q := range map[float64]int64{0.5: got.P50, 0.95: got.P95} {
			// Of few lengths a quantile is between two of them.
			rank := part * float64(len(lengths))
			low, high := lengths[max(int(rank)-1, 0)], lengths[min(int(rank), len(lengths)-1)]
			if float64(q) < float64(low)/1.42-1 || float64(q) > float64(high)*1.42+1 {
				t.Fatalf("%v of %v is %d", part, lengths, q)
			}
		}
	})
}

// TestChanges: the newest are kept and shown first, with the stops that began or ended in the span.
func TestChanges(t *testing.T) {
	now := time.Now().UTC()
	changes, recent := &admin.Changes{}, admin.NewRecent(nil)
	changes.Note(now.Add(-2*time.Hour), "reloaded", "before")
	changes.Note(now.Add(-3*time.Minute), "failed", "later")
	stops := []store.Stop{
		{ID: "stop_a", Agent: "Analyst", By: "ops", Reason: "why", Since: now.Add(-4 * time.Minute), Until: now.Add(-time.Minute)},
		{ID: "stop_b", Tool: "x", Reason: "old", Since: now.Add(-5 * time.Hour), Until: now.Add(time.Hour)},
	}
	source := &admin.Sources{Recent: recent, Changes: changes, StopsKept: func() []store.Stop { return stops }}
	shown := func(span string) (list []string) {
		a, err := source.Activity(span)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range a.Changes {
			list = append(list, c.What)
		}
		return list
	}
	for span, want := range map[string][]string{"1h": {"resumed", "failed", "stopped"}, "24h": {"resumed", "failed", "stopped", "reloaded", "stopped"}} {
		if got := shown(span); !slices.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", span, got, want)
		}
	}
	for i := range 300 {
		changes.Note(now, "tools", fmt.Sprint(i))
	}
	a, err := source.Activity("24h")
	if err != nil || len(a.Changes) != 100 {
		t.Errorf("%d changes, %v", len(a.Changes), err)
	}
}
