package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// pastTools are tools that terms count.
func pastTools() []Tool {
	pay := json.RawMessage(`{"type":"object","required":["amount","currency","to","urgent","note","loose","negative","fine","kind","ref","free"],
		"$defs":{"n":{"type":"number","minimum":0}},
		"properties":{"amount":{"type":"number","minimum":0},"currency":{"enum":["EUR","USD"]},"to":{"type":"string","maxLength":100},"urgent":{"type":"boolean"},
		"note":{"type":["string","null"]},"loose":{"type":"number"},"negative":{"type":"number","minimum":-1},"fine":{"type":"integer","exclusiveMinimum":0},
		"kind":{"const":"x"},"ref":{"$ref":"#/$defs/n"},"free":{},"secret":{"type":"number","minimum":0},"optional":{"type":"number","minimum":0},"list":{"type":"array","items":{"type":"string"}},
		"object":{"type":"object","properties":{"a":{"type":"string"}}}}}`)
	secret := func(name string) bool { return name == "amount" }
	return []Tool{
		{Name: "pay.out", InputSchema: pay},
		{Name: "pay.secret", InputSchema: pay, Secret: secret},
		{Name: "files.read", InputSchema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`)},
		{Name: "files.write", InputSchema: json.RawMessage(`{"type":"object","required":["path","mode"],"properties":{"path":{"type":"string"},"mode":{"type":"integer"}}}`)},
		{Name: "two", InputSchema: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"number","minimum":0}}}`)},
		{Name: "two", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","minimum":0}}}`)},
	}
}

func pastCompiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler(pastTools(), "customer", "untrusted")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What conditions ask of the past, by their text.
func TestTermsOfConditions(t *testing.T) {
	for expression, want := range map[string]string{
		"'untrusted' in thread.labels":                                                       "labels",
		"thread.labels == [] || size(thread.labels) > 3":                                     "labels",
		"thread.labels.exists(l, l.startsWith('cust'))":                                      "labels",
		"[args.to].all(t, t in thread.labels)":                                               "labels",
		"thread.`labels` == ['x']":                                                           "labels",
		"thread.calls('pay.out') <= 3":                                                       "thread.calls('pay.out')",
		"thread.calls('pay.*', '30m') <= 3":                                                  "thread.calls('pay.*','30m')",
		"thread.calls('*') < 100 && thread.calls('*') != 7":                                  "thread.calls('*')",
		"thread.calls('pay.out') > 0 ? true : false":                                         "thread.calls('pay.out')",
		"thread.sum('pay.out', 'amount') <= 500.5":                                           "thread.sum('pay.out','amount')",
		"thread.sum('pay.out', 'fine') in [1, 2.5]":                                          "thread.sum('pay.out','fine')",
		"thread.sum('pay.out', 'amount', {'to': args.to, 'currency': args.currency}) <= 500": "thread.sum('pay.out','amount',{'currency','to'})",
		"thread.results('files.*', {'path': args.to}, '7d') > 0":                             "thread.results('files.*',{'path'},'7d')",
		"thread.results('files.write', {'mode': args.amount, 'path': 'x'}) == 1":             "thread.results('files.write',{'mode','path'})",
		"thread.calls('pay.out', {'urgent': args.urgent, 'fine': 5})  == 1":                  "thread.calls('pay.out',{'fine','urgent'})",
		"caller.calls('pay.out', '60m') <= 3 && caller.calls('pay.out', '1h') <= 3":          "caller.calls('pay.out','1h')",
		"caller.sum('pay.out', 'amount', {'currency': args.currency}, '1d') <= 5000.0":       "caller.sum('pay.out','amount',{'currency'},'24h')",
		"'customer' in thread.labels && thread.calls('two') + thread.results('two') < 5":     "labels thread.calls('two') thread.results('two')",
		"thread.calls('pay.out', {'to': args.to == 'x' ? args.to : agent}) < 3":              "thread.calls('pay.out',{'to'})",

		// A loop may have a variable of the name.
		"args.list.all(thread, thread != 'x')":                  "",
		"args.list.exists(caller, caller == 'thread.labels')":   "",
		"[args].all(thread, thread.to == 'x')":                  "",
		"args.list.all(thread, 'x' in [thread])":                "",
		"thread.labels.exists(thread, thread == 'x')":           "labels",
		"args.to == 'thread' && agent != 'caller.calls(\"x\")'": "",
	} {
		c, issue := pastCompiler(t).Compile(expression, "pay.out")
		if issue != nil {
			t.Errorf("%s: found %s, expected %s", expression, issue.Found, issue.Expected)
			continue
		}
		var got []string
		if c.Reads().Labels {
			got = append(got, "labels")
		}
		for _, term := range c.Reads().Terms {
			got = append(got, term.String())
		}
		if found := strings.Join(got, " "); found != want {
			t.Errorf("%s: found %s; expected %s", expression, found, want)
		}
		if a, err := Analyze(expression); err != nil || a.Past.None() != c.Reads().None() {
			t.Errorf("%s: %+v, %v", expression, a, err)
		}
	}
}

// Each fault of what a condition asks is said at its place, with a cure.
func TestFaultyTerms(t *testing.T) {
	for expression, want := range map[string]string{
		"thread == 1":                                          "0: thread as a value; " + wantThread,
		"args.to == 'é' && thread.foo":                         `19: the member "foo" of thread, which there is not; ` + wantThread,
		"size(caller) > 0":                                     "5: caller as a value; " + wantCaller,
		"thread['labels'] == []":                               "0: thread as a value; " + wantThread,
		"[thread].size() == 1":                                 "1: thread as a value; " + wantThread,
		"{'a': thread}.size() == 1":                            "6: thread as a value; " + wantThread,
		"thread.label == []":                                   `0: the member "label" of thread, which there is not (did you mean "labels"?); ` + wantThread,
		"'x' in thread.label":                                  `7: the member "label" of thread, which there is not (did you mean "labels"?); ` + wantThread,
		"thread.call('pay.out') > 1":                           `0: the member "call" of thread, which there is not (did you mean "calls"?); ` + wantThread,
		"thread.calls > 1":                                     "0: thread.calls without a tool; " + wantThread,
		"caller.labels == []":                                  "0: caller.labels, which only a thread has; " + wantCaller,
		"caller.results('pay.out', '1h') > 1":                  "0: caller.results, which only a thread has; " + wantCaller,
		"caller.calls > 1":                                     "0: caller.calls without a tool; " + wantCaller,
		"has(thread.labels)":                                   "4: has(thread.labels); what is asked itself: it is always there, or cannot be known and then the condition fails",
		"thread.labels() == []":                                "0: thread.labels as a function; thread.labels, a list: 'LABEL' in thread.labels",
		"thread.calls() > 1":                                   "0: thread.calls without a tool; " + wantTool,
		"thread.calls(args.to) > 1":                            "13: a tool of thread.calls that is not written in quotes; " + wantTool,
		"thread.calls('pay.o*') > 1":                           `13: the tool "pay.o*" of thread.calls; ` + wantTool + ": 'pay', 'payments.*' or '*'",
		"thread.calls('pay.ou') > 1":                           `13: the tool "pay.ou" of thread.calls, which is not registered; ` + wantTool + ` (did you mean "pay.out"?)`,
		"thread.calls('pays.*') > 1":                           `13: the tool "pays.*" of thread.calls, which is not registered; ` + wantTool,
		"thread.calls('') > 1":                                 `13: the tool "" of thread.calls; ` + wantTool + ": 'pay', 'payments.*' or '*'",
		"thread.calls('pay.out', '1h', '1h') > 1":              "30: one argument of thread.calls too many; " + wantThread + wantOrder,
		"thread.calls('pay.out', '1h', {'to': 'x'}) > 1":       "30: one argument of thread.calls too many; " + wantThread + wantOrder,
		"thread.calls('pay.out', args) > 1":                    "24: a window of thread.calls that is not written in quotes; " + wantWindow,
		"thread.calls('pay.out', 5) > 1":                       "24: a window of thread.calls that is not written in quotes; " + wantWindow,
		"thread.calls('pay.out', '30s') > 1":                   `24: the window "30s"; ` + wantWindow,
		"thread.calls('pay.out', '8d') > 1":                    `24: the window "8d"; ` + wantWindow,
		"thread.calls('pay.out', '0m') > 1":                    `24: the window "0m"; ` + wantWindow,
		"thread.calls('pay.out', '-5m') > 1":                   `24: the window "-5m"; ` + wantWindow,
		"thread.calls('pay.out', '1h30m') > 1":                 `24: the window "1h30m"; ` + wantWindow,
		"thread.calls('pay.out', '99999999999999999999m') > 1": `24: the window "99999999999999999999m"; ` + wantWindow,
		"thread.calls('pay.out', '') > 1":                      `24: the window ""; ` + wantWindow,
		"thread.calls('pay.out', 'm') > 1":                     `24: the window "m"; ` + wantWindow,
		"caller.calls('pay.out') > 1":                          "0: caller.calls without a window; " + wantWindow,
		"caller.sum('pay.out', 'amount', {'to': 'x'}) > 1":     "0: caller.sum without a window; " + wantWindow,
		"thread.sum('pay.out') > 1":                            "0: thread.sum without a member; the name of a number of the arguments, in quotes",
		"thread.sum('pay.out', {'to': 'x'}) > 1":               "22: a member of thread.sum that is not written in quotes; the name of a number of the arguments, in quotes",
		"thread.calls('pay.out', {}) > 1":                      "24: an empty map; " + wantKeys + ", or none",
		"thread.calls('pay.out', {'to': 'x', 'to': 'y'}) > 1":  `36: the key "to" again; each key once`,
		"thread.calls('pay.out', {'a':1,'b':1,'c':1,'d':1,'e':1,'f':1,'g':1,'h':1,'i':1,'j':1,'k':1,'l':1,'m':1,'n':1,'o':1,'p':1,'q':1}) > 1": "24: 17 keys; at most 16",
		"thread.calls('pay.out', {args.to: 'x'}) > 1":                 "25: a key of thread.calls that is not written in quotes; " + wantKeys,
		"[1].all(x, thread.calls('pay.out') > x)":                     "11: thread.calls in a loop; " + wantOutside,
		"[1].all(x, [2].all(y, thread.sum('pay.out', 'amount') > y))": "22: thread.sum in a loop; " + wantOutside,

		"'custmer' in thread.labels":                    "0: the label \"custmer\", which no thread can have; one that is listed: customer, untrusted (did you mean \"customer\"?)",
		"!('' in thread.labels)":                        "2: the label \"\", which no thread can have; one that is listed: customer, untrusted",
		"[1].all(x, 'Customer' in thread.labels)":       "11: the label \"Customer\", which no thread can have; one that is listed: customer, untrusted (did you mean \"customer\"?)",
		"thread.sum('pay.out', 'amout') > 1":            `22: the member "amout" of pay.out, which its input schema does not declare (did you mean "amount"?)`,
		"thread.sum('pay.out', 'optional') > 1":         `22: the member "optional" of pay.out, which its input schema does not require`,
		"thread.sum('pay.out', 'currency') > 1":         `22: the member "currency" of pay.out, which is no number by its own schema`,
		"thread.sum('pay.out', 'loose') > 1":            `22: the member "loose" of pay.out, which has no "minimum" of 0 or more in its own schema`,
		"thread.sum('pay.out', 'negative') > 1":         `22: the member "negative" of pay.out, which has no "minimum" of 0 or more in its own schema`,
		"thread.sum('pay.out', 'ref') > 1":              `22: the member "ref" of pay.out, which is no number by its own schema`,
		"thread.sum('pay.*', 'amount') > 1":             `20: the member "amount" of pay.secret, which is x-secret`,
		"thread.sum('two', 'n') > 1":                    `18: the member "n" of two, which its input schema does not require`,
		"thread.calls('two', {'n': 1}) > 1":             `26: the key "n" of two, which its input schema does not require`,
		"thread.calls('*', {'path': 'x'}) > 1":          `27: the key "path" of pay.out, which its input schema does not declare`,
		"thread.calls('files.*', {'mode': 1}) > 1":      `33: the key "mode" of files.read, which its input schema does not declare`,
		"thread.calls('pay.out', {'note': 'x'}) > 1":    `33: the key "note" of pay.out, which is no text, number or boolean by its own schema`,
		"thread.calls('pay.out', {'free': 'x'}) > 1":    `33: the key "free" of pay.out, which is no text, number or boolean by its own schema`,
		"thread.calls('pay.secret', {'amount': 1}) > 1": `38: the key "amount" of pay.secret, which is x-secret`,

		"thread.calls('pay.out', {'to': 5}) > 1":               `31: a number for the key "to"; a text, a number or a boolean, as the schema of the tool has it`,
		"thread.calls('pay.out', {'to': true}) > 1":            `31: a boolean for the key "to"`,
		"thread.calls('pay.out', {'fine': 'x'}) > 1":           `33: a text for the key "fine"`,
		"thread.calls('pay.out', {'to': ['x']}) > 1":           `31: a list, an object or the like for the key "to"`,
		"thread.calls('pay.out', {'to': null}) > 1":            `31: a list, an object or the like for the key "to"`,
		"thread.calls('pay.out', {'to': args.amount}) > 1":     `31: a number for the key "to"`,
		"thread.calls('pay.out', {'to': args.list}) > 1":       `31: a list, an object or the like for the key "to"`,
		"thread.calls('pay.out', {'to': args.object}) > 1":     `31: a list, an object or the like for the key "to"`,
		"thread.calls('pay.out', {'fine': args.currency}) > 1": `33: a text for the key "fine"`,
		"thread.calls('pay.out', {'to': args.absent}) > 1":     "35: a condition that does not compile: there is no member 'absent'",

		"thread.calls('pay.out')":                   "0: a condition of type int",
		"thread.calls('pay.out') == 'x'":            "24: a condition that does not compile: == does not apply to (int, string)",
		"thread.sum('pay.out', 'amount')":           "10: the number of a sum as the whole condition; a comparison of the sum with a number",
		"thread.sum('pay.out', 'amount') == 'x'":    "32: the number of a sum with a string; a comparison of the sum with a number",
		"thread.sum('pay.out', 'amount') in ['x']":  "32: the number of a sum in a list(string)",
		"thread.sum('pay.out', 'amount') < args.to": "32: the number of a sum with a string; what the input schema of pay.out allows",
		"thread.labels == 'x'":                      "14: a condition that does not compile: == does not apply to (list(string), string)",
		"5 in thread.labels":                        "2: a condition that does not compile: in does not apply to (int, list(string))",
		"thread.labels[0] > 5":                      "17: a condition that does not compile: > does not apply to (string, int)",
		".thread.labels == []":                      "1: a condition that does not compile: undeclared reference",
		"@labels == []":                             "0: a condition that does not compile",
		"labels == []":                              "0: a condition that does not compile: undeclared reference",
		"calls('pay.out') > 1":                      "5: a condition that does not compile: undeclared reference",
	} {
		_, issue := pastCompiler(t).Compile(expression, "pay.out")
		if issue == nil {
			t.Errorf("%s: loaded; expected %s", expression, want)
			continue
		}
		found := fmt.Sprintf("%d: %s; %s", issue.Offset, issue.Found, issue.Expected)
		if !strings.HasPrefix(found, want) {
			t.Errorf("%s:\nfound    %s\nexpected %s", expression, found, want)
		}
	}
}

// Without a registry the tools are not checked, and without a list no thread has a label.
func TestTermsWithoutARegistry(t *testing.T) {
	c, err := NewCompiler(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, issue := c.Compile("thread.sum('any', 'n', {'k': 1}, '5m') > 1 || size(thread.labels) > 1", "x"); issue != nil {
		t.Error(issue.Found)
	}
	if _, issue := c.Compile("thread.calls('any*') > 1", "x"); issue == nil {
		t.Error("a star within a name loaded")
	}
	if _, issue := c.Compile("'x' in thread.labels", "x"); issue == nil || !strings.Contains(issue.Expected, "lists none") {
		t.Errorf("a label of no list: %v", issue)
	}
}

func TestWindows(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1m": time.Minute, "90m": 90 * time.Minute, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "168h": 7 * 24 * time.Hour, "10080m": 7 * 24 * time.Hour,
		"10081m": 0, "169h": 0, "0h": 0, "": 0, "m": 0, "1": 0, "1s": 0, "1.5h": 0, "+1h": 0, " 1h": 0, "1h ": 0, "１h": 0, "1M": 0, "9223372036854775807d": 0,
	} {
		if got := parseWindow(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
