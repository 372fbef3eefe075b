package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// newLog is a log of lines in a format, of a level and above.
func newLog(to io.Writer, format formatFlag, level levelFlag) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(level)}
	if format == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}

// levels are those of the log, the least first.
var levels = []string{"debug", "info", "warn", "error"}

// levelFlag is a flag that is one of levels.
type levelFlag slog.Level

func (l *levelFlag) String() string { return strings.ToLower(slog.Level(*l).String()) }

func (l *levelFlag) Type() string { return "level" }

func (l *levelFlag) Set(s string) error {
	if !slices.Contains(levels, s) {
		return fmt.Errorf("found %q; expected one of %s", s, strings.Join(levels, ", "))
	}
	return (*slog.Level)(l).UnmarshalText([]byte(s))
}
