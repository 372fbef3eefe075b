package similar

// Distance counts the insertions, deletions, substitutions and swaps of neighbours that
// turn a into b (each place edited once). Above limit it stops and returns limit+1.
func Distance(a, b string, limit int) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > limit {
		return limit + 1
	}
	const widest = 160
	if len(b) >= widest {
		return limit + 1
	}
	var rows [3][widest]int
	before, last, row := rows[0][:], rows[1][:], rows[2][:]
	for i := range len(a) + 1 {
		last[i] = i
	}
	for y := 1; y <= len(b); y++ {
		row[0] = y
		best := y
		for x := 1; x <= len(a); x++ {
			cost := 1
			if a[x-1] == b[y-1] {
				cost = 0
			}
			d := min(last[x]+1, row[x-1]+1, last[x-1]+cost)
			if x > 1 && y > 1 && a[x-1] == b[y-2] && a[x-2] == b[y-1] {
				d = min(d, before[x-2]+1)
			}
			row[x] = d
			best = min(best, d)
		}
		if best > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(a)], limit+1)
}
