package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	stopOfAda = `{"id":"stop_A","agent":"Analyst","tool":"github.*","reason":"\u001b[2Jwhy","by":"ada","since":"2026-11-22T10:00:00Z"}`
	stopDone  = `{"stop":` + stopOfAda + `,"scope":"all gateways","confirmed":[{"node":"N1","replica":"host-1"}],"missing":[],"in_flight":[` +
		`{"call_id":"call_A","state":"dispatched","tool":"pay\u202e","agent":"Analyst","age_ms":1500}],"problems":["A note."]}`
)

func TestStopCommands(t *testing.T) {
	d := newAdminDouble(t)
	d.status = 200
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("cgk_one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := strings.Replace(stopDone, `"missing":[]`, `"missing":[{"node":"N2"}]`, 1)
	for _, c := range []struct {
		args, answer, asked string
		code                int
		says                []string
	}{
		{"stop --agent Analyst --tool github.* --for 90m --reason why", stopDone, `POST /v1/stops Bearer cgk_one {"agent":"Analyst","tool":"github.*","reason":"why","for":"1h30m"}`, exitAccepted,
			[]string{"stop_A: stopped agent Analyst, tool github.*\n", "confirmed by 1 of 1 gateways", `call_A pay\u202e, dispatched, for 1 s: it is not ended`, "note      A note."}},
		{"stop --project acme/alpha --principal bot --thread t --reason why", missing,
			`POST /v1/stops Bearer cgk_one {"principal":"bot","workspace":"acme","project":"alpha","thread":"t","reason":"why"}`, exitRefused, []string{"confirmed by 1 of 2 gateways", "missing   N2 has not confirmed"}},
		{"stop --everything --reason why", strings.Replace(stopDone, `{"node":"N1","replica":"host-1"}`, "", 1), `POST /v1/stops Bearer cgk_one {"everything":true,"reason":"why"}`, exitRefused,
			[]string{"in force  at this gateway; of the others nothing is known"}},
		{"stop --everything --reason why", strings.Replace(stopDone, "all gateways", "this gateway alone", 1), `POST /v1/stops Bearer cgk_one {"everything":true,"reason":"why"}`, exitAccepted, []string{"at this gateway alone"}},
		{"stop --everything --reason why --json", stopDone, `POST /v1/stops Bearer cgk_one {"everything":true,"reason":"why"}`, exitAccepted, []string{`"scope":"all gateways"`}},
		{"stop --agent Analyst --tool github_x --reason why", strings.Replace(stopDone, `"problems"`, `"unknown":["tool"],"problems"`, 1), `POST /v1/stops Bearer cgk_one {"agent":"Analyst","tool":"github_x","reason":"why"}`, exitRefused,
			[]string{"stop_A: recorded, and matches nothing now: agent Analyst", "note      A note."}},
		{"stops", `{"stops":[` + stopOfAda + `],"scope":"all gateways"}`, "GET /v1/stops Bearer cgk_one", exitAccepted, []string{"stop_A", "ada", "agent Analyst, tool github.*", "resumed"}},
		{"stops --json", `{"stops":[` + stopOfAda + `],"scope":"all gateways"}`, "GET /v1/stops Bearer cgk_one", exitAccepted, []string{`{"id":"stop_A",`}},
		{"resume stop_A/..", stopDone, "DELETE /v1/stops/stop_A%2F.. Bearer cgk_one", exitAccepted, []string{"stop_A: resumed agent Analyst"}},
	} {
		d.asked, d.answer = nil, c.answer
		code, stdout, stderr := command(t, nil, append(strings.Fields(c.args), "--url", d.URL, "--key-file", key)...)
		if code != c.code || strings.Join(d.asked, "\n") != c.asked {
			t.Errorf("%s: exit code %d %s; asked\n%s", c.args, code, stderr, strings.Join(d.asked, "\n"))
		}
		for _, says := range c.says {
			if !strings.Contains(stdout, says) {
				t.Errorf("%s lacks %q:\n%s", c.args, says, stdout)
			}
		}
		if !strings.Contains(c.args, "--json") && strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }) {
			t.Errorf("%s prints %q", c.args, stdout)
		}
	}
	d.asked = nil
	for args, want := range map[string]string{
		"stop --agent a":                                  "--reason is missing",
		"stop --reason r":                                 "found nothing to stop",
		"stop --everything --agent a --reason r":          "--everything beside something",
		"stop --project alpha --reason r":                 "without its workspace",
		"stop --project a/b/c --reason r":                 "expected PROJECT or WORKSPACE/PROJECT",
		"stop --agent a --reason r --for 0s":              "--for is 0s",
		"stop --agent a --reason r --for soon":            "invalid",
		"stop all --reason r":                             "unknown command",
		"resume":                                          "ID is missing, as in: callgate resume stop_",
		"stops stop_A":                                    "unknown command",
		"stop --agent a --reason r --url http://u:p@host": "--url is no URL",
	} {
		if !strings.Contains(args, "--url") {
			args += " --url " + d.URL
		}
		if code, _, stderr := command(t, nil, strings.Fields(args)...); code != exitUsage || !strings.Contains(stderr, want) || len(d.asked) > 0 {
			t.Errorf("%s: exit code %d %s", args, code, stderr)
		}
	}
}
