# Installed, so that `_base_` and the examples of the documentation work without the source tree.
nobase_dist_pkgdata_DATA = \
  configs/_base_/datasets/voc0712.yaml \
  configs/_base_/default_runtime.yaml \
  configs/_base_/models/retinanet_r18_fpn.yaml \
  configs/_base_/models/retinanet_r50_fpn.yaml \
  configs/_base_/schedules/cosine.yaml \
  configs/_base_/schedules/cosine_restart.yaml \
  configs/_base_/schedules/cyclic.yaml \
  configs/_base_/schedules/exp.yaml \
  configs/_base_/schedules/fixed.yaml \
  configs/_base_/schedules/flat_cosine.yaml \
  configs/_base_/schedules/inv.yaml \
  configs/_base_/schedules/linear.yaml \
  configs/_base_/schedules/one_cycle.yaml \
  configs/_base_/schedules/poly.yaml \
  configs/_base_/schedules/schedule_1x.yaml \
  configs/_base_/schedules/schedule_20e.yaml \
  configs/_base_/schedules/schedule_2x.yaml \
  configs/retinanet_r18_bccd.yaml \
  configs/retinanet_shapes.yaml \
  configs/retinanet_shapes_accumulate.yaml \
  configs/retinanet_voc.yaml \
  configs/retinanet_voc_budget.yaml \
  configs/retinanet_voc_multiscale.yaml \
  configs/retinanet_voc_small_memory.yaml
