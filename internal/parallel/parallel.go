// Package parallel spreads work that computes over the processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls do once with each index below n, on as many goroutines as there are processors, and returns
// when all have ended. The calls begin in the order of the indices. If one panics, For panics with its value
// on the goroutine that called it, and what had not begun is left out.
func For(n int, do func(i int)) {
	var (
		next     atomic.Int64
		workers  sync.WaitGroup
		panicked atomic.Pointer[any]
	)
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panicked.CompareAndSwap(nil, &p)
				}
			}()
			for panicked.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	workers.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
}
