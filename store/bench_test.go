package store_test

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/store"
)

// BenchmarkCall takes a call with a key from Open to Finish; parallel ones share
// what a backend lets them share.
func BenchmarkCall(b *testing.B) {
	for name, open := range backends {
		b.Run(name, func(b *testing.B) {
			s := open(b, time.Now, store.Bounds{Calls: 1 << 24, Bytes: 1 << 40, PrincipalPercent: 100})
			var n atomic.Int64
			one := func() {
				id := strconv.FormatInt(n.Add(1), 10)
				if _, err := s.Open(ctx, newCall(id, id)); err != nil {
					b.Error(err)
				}
				if err := s.Dispatch(ctx, id, once); err != nil {
					b.Error(err)
				}
				if _, err := s.Finish(ctx, id, ending("a", "r")); err != nil {
					b.Error(err)
				}
			}
			b.Run("alone", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					one()
				}
			})
			b.Run("parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						one()
					}
				})
			})
		})
	}
}

// BenchmarkReserve reserves a call that 16 terms count, and undoes every other one.
func BenchmarkReserve(b *testing.B) {
	terms := make([]history.Term, 16)
	for i := range terms {
		terms[i] = history.Term{Tool: "pay", Kind: history.Kind(i % 2), Window: time.Duration(i/2) * time.Hour}
		if terms[i].Kind == history.Sum {
			terms[i].Member = "amount"
		}
		if i == 15 {
			terms[i].Caller = true
		}
	}
	for _, n := range []int{1, 16} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			all := termsOf(b, terms[:n]...)
			e := store.NewThreads(time.Now, store.ThreadBounds{})
			if _, err := e.KeepTerms(ctx, all, nil); err != nil {
				b.Fatal(err)
			}
			of, own := store.KeysOf(owner, "t"), payment(b, all, "0.5")
			decide := always(own)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Reserve(ctx, of, decide); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkThreads is what 100,000 threads of 16 terms take.
func BenchmarkThreads(b *testing.B) {
	terms := make([]history.Term, 16)
	for i := range terms {
		terms[i] = history.Term{Tool: "pay", Keys: []string{"k" + strconv.Itoa(i)}}
	}
	args := map[string]any{}
	for i := range terms {
		args["k"+strconv.Itoa(i)] = "v"
	}
	all := termsOf(b, terms...)
	secret, err := history.NewSecret(make([]byte, 32))
	must(b, err)
	own, err := all.Adds("pay", args, secret, time.Time{})
	must(b, err)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		e := store.NewThreads(time.Now, store.ThreadBounds{Threads: 400_000, Bytes: 1 << 40})
		_, err := e.KeepTerms(ctx, all, nil)
		must(b, err)
		began := time.Now()
		for i := range 100_000 {
			if _, err := e.Reserve(ctx, store.KeysOf(owner, strconv.Itoa(i)), always(own)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/100_000, "µs/thread")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/100_000, "B/thread")
		began = time.Now()
		s, err := e.EncodeThreads(ctx, 1, "hash")
		must(b, err)
		b.ReportMetric(float64(len(s))/100_000, "B/thread-saved")
		b.ReportMetric(time.Since(began).Seconds(), "s/save")
		began = time.Now()
		if _, _, err := store.NewThreads(time.Now, store.ThreadBounds{}).LoadThreads(ctx, s); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/load")
	}
}
