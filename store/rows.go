package store

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// firstRow is before all rows of an index, and lastRow behind them.
var (
	firstRow = Row{At: math.MinInt64}
	lastRow  = Row{At: math.MaxInt64}
)

// rowsUntil is behind all rows whose time is not after t.
func rowsUntil(t time.Time) Row { return Row{At: t.UnixMicro() + 1} }

// rows are the rows of an index in memory, in chunks of bounded length: most are added at the end,
// and removed at the beginning. The zero value is empty.
type rows struct {
	chunks [][]Row // in order, none is empty
	spare  []Row   // an empty one
}

const chunkRows = 512

func compareRows(a, b Row) int {
	if a.At != b.At {
		return cmp.Compare(a.At, b.At)
	}
	return cmp.Compare(a.ID, b.ID)
}

// chunkOf returns the first chunk whose last row is not before a row.
func (r *rows) chunkOf(row Row) int {
	last := len(r.chunks) - 1
	if last < 0 || compareRows(r.chunks[last][len(r.chunks[last])-1], row) < 0 {
		return last + 1
	}
	if first := r.chunks[0]; compareRows(first[len(first)-1], row) >= 0 {
		return 0
	}
	return sort.Search(len(r.chunks), func(i int) bool { return compareRows(r.chunks[i][len(r.chunks[i])-1], row) >= 0 })
}

func (r *rows) add(row Row) {
	i := r.chunkOf(row)
	if i == len(r.chunks) {
		if i--; i < 0 || len(r.chunks[i]) == chunkRows {
			r.chunks, r.spare, i = append(r.chunks, r.spare), nil, i+1
		}
		r.chunks[i] = append(r.chunks[i], row)
		return
	}
	c := r.chunks[i]
	at, _ := slices.BinarySearchFunc(c, row, compareRows)
	if c = slices.Insert(c, at, row); len(c) > chunkRows {
		half := slices.Clone(c[chunkRows/2:])
		clear(c[chunkRows/2:])
		c = c[:chunkRows/2]
		r.chunks = slices.Insert(r.chunks, i+1, half)
	}
	r.chunks[i] = c
}

func (r *rows) remove(row Row) {
	i := r.chunkOf(row)
	if i == len(r.chunks) {
		return
	}
	at, found := 0, r.chunks[i][0] == row
	if !found {
		at, found = slices.BinarySearchFunc(r.chunks[i], row, compareRows)
	}
	if !found {
		return
	}
	switch c := r.chunks[i]; {
	case len(c) == 1:
		c[0] = Row{}
		r.chunks, r.spare = slices.Delete(r.chunks, i, i+1), c[:0]
	case at == 0:
		c[0] = Row{}
		r.chunks[i] = c[1:]
	default:
		r.chunks[i] = slices.Delete(c, at, at+1)
	}
}

// between appends at most limit rows behind one row and not behind another.
func (r *rows) between(behind, to Row, limit int, found []Row) []Row {
	for i := r.chunkOf(behind); i < len(r.chunks); i++ {
		for _, row := range r.chunks[i] {
			switch {
			case compareRows(row, behind) <= 0:
			case limit <= 0, compareRows(row, to) > 0:
				return found
			default:
				found = append(found, row)
				limit--
			}
		}
	}
	return found
}

// behind counts rows behind a row, up to most.
func (r *rows) behind(row Row, most int) (n int) {
	for i := r.chunkOf(row); i < len(r.chunks) && n < most; i++ {
		c := r.chunks[i]
		n += len(c) - sort.Search(len(c), func(j int) bool { return compareRows(c[j], row) > 0 })
	}
	return n
}
