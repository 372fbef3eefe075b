package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNewest: pages of any size, over rotated files, are the log backwards, whatever the
// lengths of its lines are.
func TestNewest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		l := open(t, dir, Options{Record: Completion, RotateBytes: rapid.Int64Range(0, 3000).Draw(r, "rotate")})
		defer l.Close()
		n := rapid.IntRange(0, 10).Draw(r, "records")
		for i := range n {
			record := sample(fmt.Sprint("call_", i))
			record.Agent = rapid.SampledFrom([]string{"Analyst", "Intern", "Ä\"\\"}).Draw(r, "agent")
			record.Completion = `"agent":"Intern"` + strings.Repeat("x", rapid.SampledFrom([]int{0, 0, 100, 100, 5000, 256<<10 + 7}).Draw(r, "length"))
			if err := l.Append(context.Background(), record); err != nil {
				r.Fatal(err)
			}
		}
		agent := rapid.SampledFrom([]string{"", "Intern", "Ä\"\\", "nobody"}).Draw(r, "wanted")
		search := Search{Count: rapid.IntRange(1, 10).Draw(r, "count"), MaxBytes: rapid.SampledFrom([]int64{1, 1000, math.MaxInt64}).Draw(r, "bytes"), Equal: map[string]string{}}
		if agent != "" {
			search.Equal["agent"] = agent
		}
		var got []uint64
		for page := 0; ; page++ {
			found, err := l.Newest(context.Background(), search)
			if err != nil || len(found.Records) > search.Count || page > n {
				r.Fatalf("page %d: %d records, %v", page, len(found.Records), err)
			}
			for _, record := range found.Records {
				got = append(got, record.Seq)
			}
			if found.Next == 0 {
				break
			}
			search.Before = found.Next
		}
		var want []uint64
		files, err := Files(dir)
		if err != nil {
			r.Fatal(err)
		}
		if _, err := Read(func(record Record) error {
			if agent == "" || record.Agent == agent {
				want = append(want, record.Seq)
			}
			return nil
		}, files...); err != nil {
			r.Fatal(err)
		}
		slices.Reverse(want)
		if !slices.Equal(got, want) {
			r.Fatalf("found %v, expected %v", got, want)
		}
	})
}

// TestNewestBesideTheWriter: a search sees durable records alone, without a gap, while others
// are written and files are rotated.
func TestNewestBesideTheWriter(t *testing.T) {
	l := open(t, t.TempDir(), Options{RotateBytes: 2000})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			if err := l.Append(context.Background(), sample(fmt.Sprint("call_", i))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		last, _ := l.Last()
		found, err := l.Newest(context.Background(), Search{Count: 20, MaxBytes: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range found.Records {
			if i == 0 && r.Seq < last || i > 0 && r.Seq+1 != found.Records[i-1].Seq {
				t.Fatalf("behind seq %d: record %d is seq %d", last, i, r.Seq)
			}
		}
	}
	if last, hash := l.Last(); last != 300 || len(hash) != 64 {
		t.Errorf("the last is %d %s", last, hash)
	}
}

func TestNewestEndsEarly(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	mustAppend(t, l, "call_1", "call_2", "call_3")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	found, err := l.Newest(ctx, Search{Count: 10, MaxBytes: math.MaxInt64, Equal: map[string]string{"call_id": "call_1"}})
	if err != nil || found.Next != 3 || len(found.Records) != 0 {
		t.Errorf("after its time it found %+v, %v", found, err)
	}
	found, err = l.Newest(context.Background(), Search{Count: 10, MaxBytes: math.MaxInt64, Equal: map[string]string{"call_id": "call_1"}})
	if err != nil || found.Next != 0 || len(found.Records) != 1 || found.Records[0].CallID != "call_1" {
		t.Errorf("it found %+v, %v", found, err)
	}
}

// BenchmarkNewest searches 64 MiB for records that are not there.
func BenchmarkNewest(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	for range 200 {
		var waits []chan error
		for range 400 {
			done := make(chan error, 1)
			waits = append(waits, done)
			go func() { done <- l.Append(context.Background(), sample("call_aaaaaaaaaaaaaaaaaaaaaaaaaa")) }()
		}
		for _, w := range waits {
			if err := <-w; err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		found, err := l.Newest(context.Background(), Search{Count: 10, MaxBytes: 64 << 20, Equal: map[string]string{"agent": "Intern"}})
		if err != nil || found.Next != 0 {
			b.Fatal(found, err)
		}
		b.SetBytes(found.Read)
	}
}

// TestNewestSince: the search ends at the first older record, whether it is looked for or not.
func TestNewestSince(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	defer l.Close()
	begin := sample("").Time
	for i, agent := range []string{"Analyst", "Intern", "Analyst", "Intern", "Intern", "Analyst"} {
		r := sample(fmt.Sprint("call_", i))
		r.Agent, r.Time = agent, begin.Add(time.Duration(i)*time.Minute)
		if err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for since, want := range map[time.Duration]string{-time.Minute: "6 3 1", 0: "6 3 1", 1: "6 3", 2 * time.Minute: "6 3", 3 * time.Minute: "6", 6 * time.Minute: ""} {
		found, err := l.Newest(context.Background(), Search{Count: 10, MaxBytes: math.MaxInt64, Equal: map[string]string{"agent": "Analyst"}, Since: begin.Add(since)})
		var got []string
		for _, r := range found.Records {
			got = append(got, fmt.Sprint(r.Seq))
		}
		if err != nil || strings.Join(got, " ") != want || found.Next != 0 {
			t.Errorf("since %s: found %v, next %d, %v, expected %s", since, got, found.Next, err, want)
		}
	}
}
