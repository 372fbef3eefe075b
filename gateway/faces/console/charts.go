package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/refusal"
)

// The coordinates of a chart; a page stretches it.
const (
	chartWidth  = 600
	chartHeight = 100
)

// chart is a picture of intervals, each a bar of segments. The table beside it has the same figures.
type chart struct {
	Title, Label string // Label is for those who do not see the picture
	Most         string // what the height stands for
	From, To     string // times of day
	Legend       []legend
	Bars         []segment
	Hits         []hit
}

// legend is a colour, what it stands for, and how much of it there is in all.
type legend struct{ Class, Name, Sum string }

type segment struct {
	Class      string
	X, Y, W, H float64
}

// hit is an interval in which something happened, and what.
type hit struct {
	X, W float64
	Text string
}

// series is one colour of a chart.
type series struct {
	legend
	values []int64 // one for each interval
}

// drawn is a chart of series: stacked in each interval, or each from the bottom with the later ones in front.
func drawn(title string, a *admin.Activity, list []series, stacked bool, unit func(int64) string) chart {
	c := chart{Title: title, From: clock(a.Intervals[0].Start, time.Now())}
	end := a.Intervals[len(a.Intervals)-1].Start.Add(time.Duration(a.Seconds) * time.Second)
	c.To = clock(end, time.Now())
	most, at := int64(0), 0
	for i := range a.Intervals {
		if n := heightOf(list, i, stacked); n > most {
			most, at = n, i
		}
	}
	width := float64(chartWidth) / float64(len(a.Intervals))
	var sums []string
	for _, s := range list {
		c.Legend = append(c.Legend, s.legend)
		sums = append(sums, strings.TrimSpace(s.Sum+" "+s.Name))
	}
	c.Label = fmt.Sprintf("%s: %s.", title, strings.Join(sums, ", "))
	if most == 0 {
		return c
	}
	c.Most = unit(most)
	c.Label += fmt.Sprintf(" The highest is %s at %s.", c.Most, clock(a.Intervals[at].Start, time.Now()))
	for i := range a.Intervals {
		below, said := 0.0, []string{}
		for _, s := range list {
			if s.values[i] == 0 {
				continue
			}
			h := float64(s.values[i]) / float64(most) * chartHeight
			c.Bars = append(c.Bars, segment{s.Class, float64(i) * width, chartHeight - below - h, width * 0.85, h})
			if stacked {
				below += h
			}
			said = append(said, unit(s.values[i])+" "+s.Name)
		}
		if len(said) > 0 {
			c.Hits = append(c.Hits, hit{float64(i) * width, width,
				clock(a.Intervals[i].Start, time.Now()) + ": " + strings.Join(said, ", ")})
		}
	}
	return c
}

// heightOf is how high an interval is.
func heightOf(list []series, i int, stacked bool) (n int64) {
	for _, s := range list {
		if stacked {
			n += s.values[i]
		} else {
			n = max(n, s.values[i])
		}
	}
	return n
}

// maxCodes is how many codes have a colour of their own; the rest is together.
const maxCodes = 4

// chartsOf draws an activity.
func chartsOf(a *admin.Activity) []chart {
	values := func(of func(*admin.Interval) int64) (list []int64) {
		for i := range a.Intervals {
			list = append(list, of(&a.Intervals[i]))
		}
		return list
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	sum := func(n int) string { return fmt.Sprint(n) }
	each := "per " + strings.TrimPrefix(duration.Words(time.Duration(a.Seconds)*time.Second, 1), "1 ")
	charts := []chart{drawn("Calls "+each, a, []series{
		{legend{"plain", wordText, sum(a.Total.Text)}, values(func(i *admin.Interval) int64 { return int64(i.Text) })},
		{legend{"ok", wordAllowed, sum(a.Total.Allowed)}, values(func(i *admin.Interval) int64 { return int64(i.Allowed) })},
		{legend{"wait", wordAsked, sum(a.Total.Asked)}, values(func(i *admin.Interval) int64 { return int64(i.Asked) })},
		{legend{"no", wordRefused, sum(a.Total.Refused)}, values(func(i *admin.Interval) int64 { return int64(i.Refused) })},
	}, true, number)}
	charts = append(charts, drawn("Refused and sent for approval "+each+", by code", a, codeSeries(a), true, number))
	if a.Total.Ran.Count > 0 {
		charts = append(charts, drawn("Latency of executed calls", a, []series{
			{legend{"plain", "p95", micros(a.Total.Ran.P95)}, values(func(i *admin.Interval) int64 { return i.Ran.P95 })},
			{legend{"ok", "p50", micros(a.Total.Ran.P50)}, values(func(i *admin.Interval) int64 { return i.Ran.P50 })},
		}, false, micros))
	}
	charts = append(charts, drawn("Decision time", a, []series{
		{legend{"plain", "p95", micros(a.Total.Judged.P95)}, values(func(i *admin.Interval) int64 { return i.Judged.P95 })},
		{legend{"ok", "p50", micros(a.Total.Judged.P50)}, values(func(i *admin.Interval) int64 { return i.Judged.P50 })},
	}, false, micros))
	if a.Total.Tokens > 0 {
		charts = append(charts, drawn("Tokens charged to budgets "+each, a, []series{
			{legend{"ok", "tokens", number(a.Total.Tokens)}, values(func(i *admin.Interval) int64 { return i.Tokens })},
		}, true, number))
	}
	return charts
}

// codeSeries are the most frequent codes, and the rest together.
func codeSeries(a *admin.Activity) (list []series) {
	counted := sortedCounts(a.Total.Codes)
	own := counted[:min(len(counted), maxCodes)]
	rest := series{legend: legend{"plain", "other codes", ""}, values: make([]int64, len(a.Intervals))}
	others := 0
	for i, code := range own {
		class := fmt.Sprint("c", i)
		if code.Name == string(refusal.ApprovalRequired) {
			class = "wait" // as wherever people are asked
		}
		list = append(list, series{legend{class, code.Name, fmt.Sprint(code.N)}, make([]int64, len(a.Intervals))})
	}
	for i := range a.Intervals {
		for code, n := range a.Intervals[i].Codes {
			if at := slices.IndexFunc(own, func(c count) bool { return c.Name == string(code) }); at >= 0 {
				list[at].values[i] = int64(n)
			} else {
				rest.values[i] += int64(n)
				others += n
			}
		}
	}
	if others > 0 {
		rest.Sum = fmt.Sprint(others)
		list = append(list, rest)
	}
	return list
}

// busy are the intervals in which something happened, the newest first.
func busy(a admin.Activity) (list []admin.Interval) {
	for _, i := range slices.Backward(a.Intervals) {
		if i.Judged.Count > 0 || i.Ran.Count > 0 || i.Tokens > 0 {
			list = append(list, i)
		}
	}
	return list
}
