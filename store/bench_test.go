package store_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

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
