package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// metric is one that the code makes.
type metric struct {
	labels    []string
	histogram bool
}

var (
	made     = regexp.MustCompile(`.*Name: "(callgate_[a-z_]+)".*`)
	labelled = regexp.MustCompile(`\[\]string\{([^}]*)\}`)
	used     = regexp.MustCompile(`(callgate_[a-z_]+)(\{[^}]*\})?`)
	matchers = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!=|!~|=)`)
	grouped  = regexp.MustCompile(`by \(([^)]*)\)`)
)

// metrics reads from the code which metrics there are, with their labels.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	files, err := filepath.Glob("../../telemetry/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]metric{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range made.FindAllStringSubmatch(string(source), -1) {
			m := metric{histogram: strings.Contains(line[0], "Buckets:")}
			if labels := labelled.FindStringSubmatch(line[0]); labels != nil {
				for label := range strings.SplitSeq(labels[1], ",") {
					m.labels = append(m.labels, strings.Trim(label, `" `))
				}
			}
			if strings.Contains(line[0], "newCallCounter(") { // telemetry.metrics.labels adds these
				m.labels = append(m.labels, "agent", "tool")
			}
			found[line[1]] = m
		}
	}
	return found
}

// faultsOf returns what is wrong with an expression: it must name metrics and labels that exist,
// and close what it opens.
func faultsOf(expression string, known map[string]metric) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	allowed := []string{"instance", "le"} // Prometheus' own
	uses := used.FindAllStringSubmatch(expression, -1)
	if len(uses) == 0 {
		fault("names no metric")
	}
	for _, use := range uses {
		name := use[1]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && known[base].histogram {
				name = base
			}
		}
		m, ok := known[name]
		if !ok || m.histogram && name == use[1] {
			fault("there is no metric %s", use[1])
		}
		allowed = append(allowed, m.labels...)
		for _, matcher := range matchers.FindAllStringSubmatch(use[2], -1) {
			if !slices.Contains(m.labels, matcher[1]) && matcher[1] != "instance" {
				fault("%s has no label %s", name, matcher[1])
			}
		}
	}
	for _, by := range grouped.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if !slices.Contains(allowed, strings.TrimSpace(label)) {
				fault("no metric of it has the label %s", label)
			}
		}
	}
	var open []rune
	for _, r := range expression {
		if i := strings.IndexRune("([{", r); i >= 0 {
			open = append(open, []rune(")]}")[i])
		} else if strings.ContainsRune(")]}", r) {
			if len(open) == 0 || open[len(open)-1] != r {
				return append(faults, "closes what it did not open")
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		fault("does not close what it opens")
	}
	return faults
}

// Every metric and label of the alerts exists, and every alert has an entry for people.
func TestAlerts(t *testing.T) {
	content, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	known, alerts := metrics(t), map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if alerts[rule.Alert] {
				t.Errorf("%s stands twice", rule.Alert)
			}
			alerts[rule.Alert] = true
			if faults := faultsOf(rule.Expr, known); len(faults) > 0 {
				t.Errorf("%s: %s: %q", rule.Alert, rule.Expr, faults)
			}
			if !strings.Contains(string(operations), "\n### "+rule.Alert+"\n\n") || rule.Annotations["runbook"] != "docs/operations.md#"+strings.ToLower(rule.Alert) {
				t.Errorf("%s: docs/operations.md has no entry, or its runbook is another: %s", rule.Alert, rule.Annotations["runbook"])
			}
			if rule.Annotations["summary"] == "" || rule.For == "" || !slices.Contains([]string{"warning", "critical"}, rule.Labels["severity"]) {
				t.Errorf("%s lacks a summary, a time or a severity", rule.Alert)
			}
		}
	}
	if len(alerts) == 0 {
		t.Error("there are no alerts")
	}
	for _, entry := range regexp.MustCompile(`\n### (Callgate\w+)\n`).FindAllStringSubmatch(string(operations), -1) {
		if !alerts[entry[1]] {
			t.Errorf("docs/operations.md has an entry for %s, which is no alert", entry[1])
		}
	}
}

// Every metric and label of the dashboard exists.
func TestDashboard(t *testing.T) {
	content, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Name string } }
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	known, ids := metrics(t), map[int]bool{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || ids[p.ID] || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d (%s) lacks a title, a place, a query, or an id of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			if faults := faultsOf(target.Expr, known); len(faults) > 0 {
				t.Errorf("%s: %s: %q", p.Title, target.Expr, faults)
			}
		}
	}
	if len(ids) < 15 || len(dashboard.Templating.List) != 2 {
		t.Errorf("%d panels", len(ids))
	}
}

// The check finds what is wrong.
func TestExpressionsCanFail(t *testing.T) {
	known := metrics(t)
	if m := known["callgate_stage_seconds"]; !m.histogram || !slices.Equal(m.labels, []string{"stage"}) {
		t.Errorf("callgate_stage_seconds is read as %+v", m)
	}
	for _, name := range []string{"callgate_verdicts_total", "callgate_build_info", "callgate_breakers_open", "callgate_tools_quarantined"} {
		if _, ok := known[name]; !ok {
			t.Errorf("%s is not found in the code", name)
		}
	}
	for expression, want := range map[string]string{
		`sum by (code) (rate(callgate_verdicts_total{verdict="refused"}[5m]))`: "",
		`up == 0`:                                  "names no metric",
		`callgate_verdict_total`:                   "there is no metric callgate_verdict_total",
		`callgate_verdicts_total_count`:            "there is no metric callgate_verdicts_total_count",
		`callgate_stage_seconds > 1`:               "there is no metric callgate_stage_seconds",
		`callgate_breakers_open{tool=""}`:          "callgate_breakers_open has no label tool",
		`sum by (agent) (callgate_verdicts_total)`: "",
		`sum by (agent) (callgate_shed_total)`:     "there is no metric callgate_shed_total; no metric of it has the label agent",
		`sum by (agent) (callgate_build_info)`:     "no metric of it has the label agent",
		`rate(callgate_verdicts_total[5m]`:         "does not close what it opens",
		`rate(callgate_verdicts_total[5m))`:        "closes what it did not open",
	} {
		if got := strings.Join(faultsOf(expression, known), "; "); got != want {
			t.Errorf("%s: found %q, want %q", expression, got, want)
		}
	}
}
