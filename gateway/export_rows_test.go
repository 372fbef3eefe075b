package gateway

import (
	"reflect"
	"runtime"
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
