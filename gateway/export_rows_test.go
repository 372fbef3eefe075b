package gateway

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Rows are the names of the checks of the pipeline, in its order.
func Rows() []string {
	var rows []string
	for _, check := range pipeline {
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

// Mutate spoils the pipeline of this process in one of those ways.
func Mutate(mutant string) error {
	rows := Rows()
	if row, ok := strings.CutPrefix(mutant, "without "); ok {
		if i := slices.Index(rows, row); i >= 0 {
			pipeline = slices.Delete(slices.Clone(pipeline), i, i+1)
			return nil
		}
	}
	if row, _, ok := strings.Cut(mutant, " before "); ok {
		if i := slices.Index(rows, row); i > 0 && slices.Contains(Mutants(), mutant) {
			pipeline = slices.Clone(pipeline)
			pipeline[i-1], pipeline[i] = pipeline[i], pipeline[i-1]
			return nil
		}
	}
	return fmt.Errorf("found the mutant %q; expected one of %q", mutant, Mutants())
}
