package gateway

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Rows are the names of the checks of both lists of the pipeline, in their order.
func Rows() []string {
	var rows []string
	for _, check := range slices.Concat(identify, judge) {
		name := runtime.FuncForPC(reflect.ValueOf(check.run).Pointer()).Name()
		rows = append(rows, name[strings.LastIndexByte(name, '.')+1:])
	}
	return rows
}

// Mutants are the ways to spoil the pipeline by one row: each row taken out, and every
// two neighbours exchanged.
func Mutants() []string {
	var all []string
	rows := Rows()
	for i, row := range rows {
		all = append(all, "without "+row)
		if i > 0 {
			all = append(all, row+" before "+rows[i-1])
		}
	}
	return all
}

// Mutate spoils the pipeline of this process in one of those ways. The last row of
// identify and the first of judge are neighbours.
func Mutate(mutant string) error {
	rows, all, first := Rows(), slices.Concat(identify, judge), len(identify)
	if row, ok := strings.CutPrefix(mutant, "without "); ok {
		if i := slices.Index(rows, row); i >= 0 {
			all = slices.Delete(all, i, i+1)
			if i < first {
				first--
			}
			identify, judge = all[:first], all[first:]
			return nil
		}
	}
	if row, _, ok := strings.Cut(mutant, " before "); ok {
		if i := slices.Index(rows, row); i > 0 && slices.Contains(Mutants(), mutant) {
			all[i-1], all[i] = all[i], all[i-1]
			identify, judge = all[:first], all[first:]
			return nil
		}
	}
	return fmt.Errorf("found the mutant %q; expected one of %q", mutant, Mutants())
}
