package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// Rows are what a sorted list is, whatever is added and removed.
func TestRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var r rows
	var want []Row
	for i := range 20_000 {
		row := Row{random.Int64N(300), fmt.Sprint(random.IntN(20))}
		at, there := slices.BinarySearchFunc(want, row, compareRows)
		switch {
		case !there && i < 12_000:
			r.add(row)
			want = slices.Insert(want, at, row)
		default:
			r.remove(row)
			if there {
				want = slices.Delete(want, at, at+1)
			}
		}
		if i%500 != 0 {
			continue
		}
		if got := r.between(firstRow, lastRow, 1<<20, nil); !slices.Equal(got, want) {
			t.Fatalf("after %d: %d rows, want %d", i, len(got), len(want))
		}
		behind, to := Row{random.Int64N(300), "5"}, Row{random.Int64N(300), ""}
		var some []Row
		n := 0
		for _, row := range want {
			if compareRows(row, behind) > 0 {
				if n++; compareRows(row, to) <= 0 && len(some) < 40 {
					some = append(some, row)
				}
			}
		}
		if got := r.between(behind, to, 40, nil); !slices.Equal(got, some) {
			t.Fatalf("behind %v, to %v: %v, want %v", behind, to, got, some)
		}
		if got := r.behind(behind, 1<<20); got != n {
			t.Fatalf("%d rows behind %v, want %d", got, behind, n)
		}
	}
	for _, row := range want {
		r.remove(row)
	}
	if len(r.chunks) > 0 {
		t.Errorf("%d chunks are left", len(r.chunks))
	}
}

// An index that is longer than what is read at once is read to its end.
func TestLongIndexes(t *testing.T) {
	m, ctx := NewMemory(time.Now), context.Background()
	const n = 2*scanBatch + 3
	for i := range n {
		if err := m.AddGrant(ctx, approval.Grant{ID: fmt.Sprintf("grant_%04d", i), Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := m.Grants(ctx, "grant_0001", n)
	if err != nil || len(found) != n-2 || found[0].ID != "grant_0002" || found[n-3].ID != fmt.Sprintf("grant_%04d", n-1) {
		t.Errorf("%d grants, %v", len(found), err)
	}
	if found, err = m.Grants(ctx, "", scanBatch+1); err != nil || len(found) != scanBatch+1 {
		t.Errorf("%d grants, %v", len(found), err)
	}
}
