package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

// TestServeLog: the log of serve has the format and the least level that the flags state, and other
// values of them are refused.
func TestServeLog(t *testing.T) {
	for _, c := range []struct {
		format formatFlag
		level  string
		lines  int
	}{{"json", "debug", 4}, {"json", "info", 3}, {"text", "warn", 2}, {"text", "error", 1}} {
		var level levelFlag
		if err := level.Set(c.level); err != nil || level.String() != c.level {
			t.Fatalf("%s: %v, %s", c.level, err, &level)
		}
		var out bytes.Buffer
		log := newLog(&out, c.format, level)
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			log.Log(t.Context(), l, "something happened", "files", []string{"a.yaml"})
		}
		if n := strings.Count(out.String(), "\n"); n != c.lines {
			t.Errorf("%v: %d lines: %s", c, n, &out)
		}
		last := out.String()[strings.LastIndex(strings.TrimSpace(out.String()), "\n")+1:]
		if isJSON := json.Valid([]byte(last)); isJSON != (c.format == "json") || !isJSON && !strings.Contains(last, `level=ERROR msg="something happened" files=[a.yaml]`) {
			t.Errorf("%v: %s", c, last)
		}
	}
	for line, says := range map[string]string{
		"serve --log-level all":  `found "all"; expected one of debug, info, warn, error`,
		"serve --log-level INFO": `found "INFO"; expected one of`,
		"serve --log-format xml": `found "xml"; expected text or json`,
	} {
		if code, _, stderr := command(t, nil, strings.Fields(line)...); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}
