package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller"
)

type orderVector struct {
	Name string    `json:"name"`
	Now  time.Time `json:"now"`
	Pods []*v1.Pod `json:"pods"`
	Rank []int     `json:"rank"`
	// Before[k] = [i, j]: pod i is deleted before pod j. A pair in neither order is open:
	// a tie, or a pair on a cycle of the upstream comparison, which is not transitive.
	Before [][2]int `json:"before"`
}

func orderCase(i int) any {
	count := 3 + rng.Intn(6)
	v := orderVector{Name: fmt.Sprintf("deletion-order-%04d", i), Now: now}
	sameReady, sameCreation := chance(0.4), chance(0.2)
	for j := 0; j < count; j++ {
		p := randPod(fmt.Sprintf("p%d", j), nil)
		// Most pods are equal in the early rules, so that later rules decide too.
		if chance(0.7) {
			p.Spec.NodeName = "node-a"
			p.Status.Phase = v1.PodRunning
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: at(age())}}
			if chance(0.8) {
				p.Annotations = nil
			}
			if sameReady || chance(0.3) {
				p.Status.Conditions[0].LastTransitionTime = at(100 * time.Second)
			}
			if sameCreation || chance(0.2) {
				p.CreationTimestamp = at(200 * time.Second)
			}
			if chance(0.05) {
				p.CreationTimestamp = metav1.Time{}
			}
			if chance(0.03) {
				p.CreationTimestamp = metav1.NewTime(now.Add(30 * time.Second))
			}
		}
		v.Pods = append(v.Pods, p)
		v.Rank = append(v.Rank, pick(0, 1, 1, 1, 2))
	}
	l := controller.ActivePodsWithRanks{Pods: v.Pods, Rank: v.Rank, Now: metav1.NewTime(now)}
	v.Before = [][2]int{}
	reach := make([][]bool, count)
	for a := range reach {
		reach[a] = make([]bool, count)
		for b := range reach {
			reach[a][b] = a != b && l.Less(a, b)
		}
	}
	for k := range reach {
		for a := range reach {
			for b := range reach {
				reach[a][b] = reach[a][b] || reach[a][k] && reach[k][b]
			}
		}
	}
	for a := range v.Pods {
		for b := range v.Pods {
			if a != b && l.Less(a, b) && !reach[b][a] {
				v.Before = append(v.Before, [2]int{a, b})
			}
		}
	}
	return v
}
