package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

type selectorVector struct {
	Name     string                `json:"name"`
	Selector *metav1.LabelSelector `json:"selector"`
	Labels   map[string]string     `json:"labels"`
	Invalid  bool                  `json:"invalid,omitempty"`
	Matches  bool                  `json:"matches"`
}

func randLabels() map[string]string {
	m := map[string]string{}
	for _, k := range []string{"app", "tier", "track", "example.com/zone"} {
		if chance(0.6) {
			m[k] = pick("web", "db", "canary", "", "a")
		}
	}
	return m
}

func selectorCase(i int) any {
	v := selectorVector{Name: fmt.Sprintf("selector-%04d", i), Labels: randLabels()}
	switch {
	case chance(0.04): // nil
	case chance(0.05):
		v.Selector = &metav1.LabelSelector{}
	default:
		s := &metav1.LabelSelector{}
		if chance(0.6) {
			s.MatchLabels = map[string]string{}
			for k, val := range v.Labels {
				if chance(0.5) {
					if chance(0.85) {
						s.MatchLabels[k] = val
					} else {
						s.MatchLabels[k] = pick("web", "db", "zzz")
					}
				}
			}
		}
		for j := rng.Intn(3); j > 0; j-- {
			r := metav1.LabelSelectorRequirement{Key: pick("app", "tier", "track", "example.com/zone", "absent")}
			r.Operator = pick(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				for k := rng.Intn(3) + 1; k > 0; k-- {
					r.Values = append(r.Values, pick("web", "db", "canary", "", "a", "b"))
				}
			}
			if chance(0.08) { // broken ones
				switch rng.Intn(5) {
				case 0:
					r.Operator = "Near"
				case 1:
					r.Values = nil
					r.Operator = metav1.LabelSelectorOpIn
				case 2:
					r.Operator = metav1.LabelSelectorOpExists
					r.Values = []string{"x"}
				case 3:
					r.Key = "-bad key-"
				case 4:
					r.Operator = metav1.LabelSelectorOpIn
					r.Values = []string{strings.Repeat("x", 64)}
				}
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		v.Selector = s
	}
	sel, err := metav1.LabelSelectorAsSelector(v.Selector)
	if err != nil {
		v.Invalid = true
	} else {
		v.Matches = sel.Matches(labels.Set(v.Labels))
	}
	return v
}
