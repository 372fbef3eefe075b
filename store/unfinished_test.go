package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
)

// Calls that were dispatched or wait are listed, in pages of any size, and none that has ended.
func TestUnfinished(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		lister := s.(interface {
			Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error)
		})
		list := func(size int) (found []string) {
			for after := ""; ; {
				page, err := lister.Unfinished(ctx, after, size)
				if err != nil || len(page) > size {
					t.Fatalf("behind %q: %d calls, %v", after, len(page), err)
				}
				for _, c := range page {
					found = append(found, c.ID+" "+string(c.Step)+" "+c.Task.Tool+" "+c.Task.Agent)
				}
				if len(page) < size {
					return found
				}
				after = page[len(page)-1].ID
			}
		}
		var want []string
		for i := range 7 {
			key := ""
			if i%2 == 0 {
				key = fmt.Sprint("key", i)
			}
			id := dispatched(t, s, newCall(fmt.Sprint("call_", i), key), once)
			switch i % 3 {
			case 0:
				must(t, s.Update(ctx, id, store.Defer{Until: time.UnixMilli(1_800_000_000_000)}))
				want = append(want, id+" waiting payments.refund Analyst")
			case 1:
				want = append(want, id+" dispatched payments.refund Analyst")
			default:
				if _, err := s.Finish(ctx, id, ending(id, "r")); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, size := range []int{1, 2, 100} {
			// Redis may be slow.
			found := list(size)
			for range 600 {
				if slices.Equal(found, want) {
					break
				}
				time.Sleep(100 * time.Millisecond)
				found = list(size)
			}
			if !slices.Equal(found, want) {
				t.Errorf("pages of %d: found %v, expected %v", size, found, want)
			}
		}
	})
}
