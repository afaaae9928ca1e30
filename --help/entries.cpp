// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"

namespace wl {

void add_attention_entries(PyObject* module);
void add_coarsen_entries(PyObject* module);
void add_facts_entries(PyObject* module);
void add_gmres_entries(PyObject* module);
void add_ilu_entries(PyObject* module);
void add_inverse_entries(PyObject* module);
void add_isai_entries(PyObject* module);
void add_mask_entries(PyObject* module);
void add_ordering_entries(PyObject* module);
void add_parilu_entries(PyObject* module);
void add_parilut_entries(PyObject* module);
void add_precision_entries(PyObject* module);
void add_rows_entries(PyObject* module);
void add_scan_entries(PyObject* module);
void add_spgemm_entries(PyObject* module);
void add_status_entries(PyObject* module);
void add_summary_entries(PyObject* module);
void add_triangular_entries(PyObject* module);
void add_values_entries(PyObject* module);
void add_vector_entries(PyObject* module);
void add_cg_entries(PyObject* module);
void add_estimating_entries(PyObject* module);
void add_ritz_entries(PyObject* module);
void add_bicgstab_entries(PyObject* module);
void add_bicgstab_left_entries(PyObject* module);
void add_bicg_entries(PyObject* module);
void add_blockcg_entries(PyObject* module);
void add_cgs_entries(PyObject* module);
void add_chebyshev_entries(PyObject* module);
void add_fcg_entries(PyObject* module);
void add_gcrot_entries(PyObject* module);
void add_gmres_left_entries(PyObject* module);
void add_gmres_end_entries(PyObject* module);
void add_idr_entries(PyObject* module);
void add_ir_entries(PyObject* module);
void add_minres_entries(PyObject* module);
void add_multigrid_entries(PyObject* module);
void add_pipecg_entries(PyObject* module);
void add_qmr_entries(PyObject* module);
void add_tfqmr_entries(PyObject* module);
void add_least_entries(PyObject* module);
void add_bidiagonal_entries(PyObject* module);
void add_lsmr_entries(PyObject* module);
void add_lsqr_entries(PyObject* module);
void add_smooth_entries(PyObject* module);
void add_kcycle_entries(PyObject* module);

void add_generated_entries(PyObject* module) {
  add_attention_entries(module);
  add_coarsen_entries(module);
  add_facts_entries(module);
  add_gmres_entries(module);
  add_ilu_entries(module);
  add_inverse_entries(module);
  add_isai_entries(module);
  add_mask_entries(module);
  add_ordering_entries(module);
  add_parilu_entries(module);
  add_parilut_entries(module);
  add_precision_entries(module);
  add_rows_entries(module);
  add_scan_entries(module);
  add_spgemm_entries(module);
  add_status_entries(module);
  add_summary_entries(module);
  add_triangular_entries(module);
  add_values_entries(module);
  add_vector_entries(module);
  add_cg_entries(module);
  add_estimating_entries(module);
  add_ritz_entries(module);
  add_bicgstab_entries(module);
  add_bicgstab_left_entries(module);
  add_bicg_entries(module);
  add_blockcg_entries(module);
  add_cgs_entries(module);
  add_chebyshev_entries(module);
  add_fcg_entries(module);
  add_gcrot_entries(module);
  add_gmres_left_entries(module);
  add_gmres_end_entries(module);
  add_idr_entries(module);
  add_ir_entries(module);
  add_minres_entries(module);
  add_multigrid_entries(module);
  add_pipecg_entries(module);
  add_qmr_entries(module);
  add_tfqmr_entries(module);
  add_least_entries(module);
  add_bidiagonal_entries(module);
  add_lsmr_entries(module);
  add_lsqr_entries(module);
  add_smooth_entries(module);
  add_kcycle_entries(module);
}

} // namespace wl
