package main

import (
	"context"
	"sync/atomic"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/kubernetes/pkg/controller"
)

// createsTwice creates two pods for each create.
type createsTwice struct {
	controller.PodControlInterface
}

func (c createsTwice) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, set runtime.Object, owner *metav1.OwnerReference) error {
	if err := c.PodControlInterface.CreatePods(ctx, namespace, template, set, owner); err != nil {
		return err
	}
	return c.PodControlInterface.CreatePods(ctx, namespace, template, set, owner)
}

// leavesOut skips every other write of a kind, and reports success.
type leavesOut struct {
	controller.PodControlInterface
	creates, deletes bool
	asked            atomic.Int64
}

func (l *leavesOut) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, set runtime.Object, owner *metav1.OwnerReference) error {
	if l.creates && l.asked.Add(1)%2 == 0 {
		return nil
	}
	return l.PodControlInterface.CreatePods(ctx, namespace, template, set, owner)
}

func (l *leavesOut) DeletePod(ctx context.Context, namespace, name string, set runtime.Object) error {
	if l.deletes && l.asked.Add(1)%2 == 0 {
		return nil
	}
	return l.PodControlInterface.DeletePod(ctx, namespace, name, set)
}

// deletesAnother deletes another active pod of the ReplicaSet, instead of the requested one or in addition to it.
type deletesAnother struct {
	controller.PodControlInterface
	client  kubernetes.Interface
	instead bool
}

func (d deletesAnother) DeletePod(ctx context.Context, namespace, name string, set runtime.Object) error {
	owner, err := meta.Accessor(set)
	if err != nil {
		return err
	}
	pods, err := d.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// The last pod, because upstream names the first of equal pods.
	for at := len(pods.Items) - 1; at >= 0; at-- {
		pod := &pods.Items[at]
		if metav1.IsControlledBy(pod, owner) && pod.DeletionTimestamp == nil && pod.Name != name {
			if err := d.PodControlInterface.DeletePod(ctx, namespace, pod.Name, set); err != nil {
				return err
			}
			break
		}
	}
	if d.instead {
		return nil
	}
	return d.PodControlInterface.DeletePod(ctx, namespace, name, set)
}

// statusClient is a client that changes or omits written statuses.
type statusClient struct {
	kubernetes.Interface
	change func(*apps.ReplicaSet) bool
}

type statusApps struct {
	appsclient.AppsV1Interface
	change func(*apps.ReplicaSet) bool
}

type statusSets struct {
	appsclient.ReplicaSetInterface
	change func(*apps.ReplicaSet) bool
}

func (c statusClient) AppsV1() appsclient.AppsV1Interface {
	return statusApps{c.Interface.AppsV1(), c.change}
}

func (c statusApps) ReplicaSets(namespace string) appsclient.ReplicaSetInterface {
	return statusSets{c.AppsV1Interface.ReplicaSets(namespace), c.change}
}

func (c statusSets) UpdateStatus(ctx context.Context, set *apps.ReplicaSet, options metav1.UpdateOptions) (*apps.ReplicaSet, error) {
	if !c.change(set) {
		return set, nil
	}
	return c.ReplicaSetInterface.UpdateStatus(ctx, set, options)
}
