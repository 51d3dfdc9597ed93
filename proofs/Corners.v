(* Plain samples with any c rows replaced: the sharp criterion.

   Rows r v of every value v are taken away, a v are given back in one table and
   b v in the other. The ratio is largest where all c rows are taken from one value
   u (a corner, by log-convexity) and b goes to values outside of the sample. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial Samples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(* A positive log-convex sequence is at most the larger of its ends. *)
Lemma two_ends (R : realFieldType) (k : nat -> R) m : (forall t, (t <= m)%N -> 0 < k t) ->
    (forall t, (t.+2 <= m)%N -> k t.+1 * k t.+1 <= k t * k t.+2) ->
  forall t, (t <= m)%N -> k t <= k 0%N \/ k t <= k m.
Proof.
move=> pos convex.
have rising t c : (t + c < m)%N -> k t <= k t.+1 -> k (t + c)%N <= k (t + c).+1.
  elim: c => [|c IH] lt_m up; first by rewrite addn0.
  have lt_m' : ((t + c).+1 < m)%N by rewrite -addnS.
  rewrite addnS; have := convex _ lt_m'; have {}up := IH (ltnW lt_m') up.
  have k1 := pos _ (ltnW lt_m'); have k2 := pos _ lt_m'.
  move=> sq; rewrite -(ler_pmul2l k1); apply: le_trans sq _.
  by rewrite ler_pmul2r.
have to_end t c : (t + c = m)%N -> (t < m)%N -> k t <= k t.+1 -> k t <= k m.
  move=> end_m _ up; rewrite -[in leRHS]end_m; have : forall e, (e <= c)%N -> k t <= k (t + e)%N.
    elim=> [|e IH] le_e; first by rewrite addn0.
    apply: le_trans (IH (ltnW le_e)) _; rewrite addnS; apply: rising up.
    by rewrite -end_m ltn_add2l.
  by apply.
elim=> [|t IH] le_tm; first by left.
case: (lerP (k t) (k t.+1)) => [up | /ltW down].
  right; case: (ltngtP t.+1 m) le_tm => [lt_m | // | ->] _ //.
  apply: (to_end t.+1 (m - t.+1)%N); rewrite ?subnKC ?(ltnW lt_m) //.
  by have := rising t 1%N; rewrite addn1; apply.
have [at0 | atm] := IH (ltnW le_tm); first by left; apply: le_trans down at0.
by right; apply: le_trans down atm.
Qed.

Section Corners.
Variables (R : realFieldType) (V : finType) (g : V -> nat -> R) (c : nat).
Hypothesis g_gt0 : forall v t, (t <= c)%N -> 0 < g v t.
Hypothesis convex : forall v t, (t.+2 <= c)%N -> g v t.+1 * g v t.+1 <= g v t * g v t.+2.

Definition corner (u v : V) : nat := if v == u then c else 0%N.

Lemma at_a_corner (r : V -> nat) : (0 < c)%N -> (\sum_v r v = c)%N ->
  exists u, \prod_v g v (r v) <= \prod_v g v (corner u v).
Proof.
move=> c_gt0; have [k] := ubnP #|[set v | 0 < r v]%N|; elim: k r => // k IH r small sum_r.
have le_c v : (r v <= c)%N by rewrite -sum_r (bigD1 v) //= leq_addr.
have [u u_pos] : exists u, (0 < r u)%N.
  apply/existsP; apply: contraLR c_gt0 => /existsPn none.
  by rewrite -sum_r big1 // => v _; apply/eqP; rewrite -leqn0 leqNgt none.
case: (boolP [exists v, (v != u) && (0 < r v)%N]) => [/existsP [v /andP [neq v_pos]] | /existsPn none].
  pose m := (r u + r v)%N.
  have le_mc : (m <= c)%N.
    by rewrite -sum_r (bigD1 u) //= (bigD1 v) //= addnA leq_addr.
  pose move_ t w := if w == u then t else if w == v then (m - t)%N else r w.
  have prodE t : \prod_w g w (move_ t w) = g u t * g v (m - t)%N * \prod_(w | (w != u) && (w != v)) g w (r w).
    rewrite (bigD1 u) //= (bigD1 v) //= /move_ eqxx (negbTE neq) eqxx mulrA; congr (_ * _).
    by apply: eq_bigr => w /andP [/negbTE -> /negbTE ->].
  have rest_ge0 : 0 <= \prod_(w | (w != u) && (w != v)) g w (r w).
    by apply: prodr_ge0 => w _; apply/ltW/g_gt0.
  have now : \prod_w g w (r w) = \prod_w g w (move_ (r u) w).
    apply: eq_bigr => w _; rewrite /move_ /m addKn; case: eqP => [-> // | _]; by case: eqP => [-> |].
  have at_u t : move_ t u = t by rewrite /move_ eqxx.
  have at_v : move_ m v = 0%N by rewrite /move_ (negbTE neq) eqxx subnn.
  have fewer t w : (0 < r w)%N -> move_ t w = 0%N -> (#|[set x | 0 < move_ t x]%N| < k)%N.
    move=> w_pos w_0; rewrite ltnS in small; apply: leq_trans small; apply/proper_card/properP; split.
      apply/subsetP => x; rewrite !inE /move_.
      by case: eqP => [-> // | _]; case: eqP => [-> // |].
    by exists w; rewrite !inE // w_0.
  have same_sum t : (t <= m)%N -> (\sum_w move_ t w = c)%N.
    move=> le_t; rewrite -sum_r (bigD1 u) //= (bigD1 v) //= [in RHS](bigD1 u) //= [in RHS](bigD1 v) //=.
    rewrite /move_ eqxx (negbTE neq) eqxx !addnA subnKC //; congr (_ + _)%N.
    by apply: eq_bigr => w /andP [/negbTE -> /negbTE ->].
  have ends := @two_ends R (fun t => g u t * g v (m - t)%N) m.
  have [||le0|lem] := ends _ _ (r u) (leq_addr _ _).
  - by move=> t le_t; rewrite mulr_gt0 ?g_gt0 ?(leq_trans le_t) // (leq_trans (leq_subr _ _)).
  - move=> t le_t; have le_tc := leq_trans le_t le_mc.
    have e1 : (m - t = (m - t.+2).+2)%N by rewrite -subSn // -subSn ?ltnS ?(ltnW le_t) // !subSS.
    have e2 : (m - t.+1 = (m - t.+2).+1)%N by rewrite -subSn // subSS.
    have c1 := convex u le_tc; have c2 : ((m - t.+2).+2 <= c)%N by rewrite -e1 (leq_trans (leq_subr _ _)).
    have {}c2 := convex v c2.
    rewrite mulrACA [leRHS]mulrACA e1 e2 [X in _ <= _ * X]mulrC.
    apply: ler_pmul => //; apply: mulr_ge0; apply/ltW/g_gt0; rewrite ?(ltnW le_tc) //.
      by rewrite -e2 (leq_trans (leq_subr _ _)).
    by rewrite -e2 (leq_trans (leq_subr _ _)).
  - have [u' bound] := IH (move_ 0%N) (fewer 0%N u u_pos (at_u 0%N)) (same_sum _ (leq0n m)).
    by exists u'; rewrite now prodE; apply: le_trans bound; rewrite prodE; apply: ler_wpmul2r.
  - have [u' bound] := IH (move_ m) (fewer m v v_pos at_v) (same_sum _ (leqnn m)).
    by exists u'; rewrite now prodE; apply: le_trans bound; rewrite prodE; apply: ler_wpmul2r.
exists u; rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: eq_bigr => v _; congr (g v _).
have zero w : w != u -> r w = 0%N.
  by move=> neq; have := none w; rewrite neq /= -eqn0Ngt => /eqP.
rewrite /corner; case: eqVneq => [-> | /zero //].
by rewrite -sum_r (bigD1 u) //= big1 ?addn0 // => w /zero.
Qed.

End Corners.

Section Criterion.
Variables (R : realFieldType) (V : finType) (p eps : R) (s n : V -> nat) (c : nat).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1) (eps_ge0 : 0 <= eps).
(* Every value of the sample has at least c rows outside of it; else no ratio bounds it. *)
Hypothesis room : forall v, (0 < s v)%N -> (s v + c <= n v)%N.

(* m / (m - s): what the m-th row of a value contributes; and a rows after r were taken away. *)
Definition factor v (m : nat) : R := m%:R / (m%:R - (s v)%:R).
Definition gained v (r a : nat) : R := \prod_(i < a) factor v (n v - r + i.+1)%N.

Lemma factor_absent v m : s v = 0%N -> (0 < m)%N -> factor v m = 1.
Proof. by move=> s_0 m_gt0; rewrite /factor s_0 subr0 divff // pnatr_eq0 -lt0n. Qed.

Lemma factor_ge1 v m : (s v < m)%N -> 1 <= factor v m.
Proof.
move=> lt_sm; rewrite ler_pdivl_mulr ?subr_gt0 ?ltr_nat // mul1r ler_subl_addr ler_addl.
exact: ler0n.
Qed.

Lemma factor_convex v y : (s v < y)%N ->
  factor v y.+1 * factor v y.+1 <= factor v y.+2 * factor v y.
Proof.
move=> lt_sy; rewrite /factor.
have -> : y.+1%:R = y%:R + 1 :> R by rewrite -addn1 natrD.
have -> : y.+2%:R = y%:R + 2%:R :> R by rewrite -addn2 natrD.
have gap : 0 < y%:R - (s v)%:R :> R by rewrite subr_gt0 ltr_nat.
have y_ge0 : 0 <= y%:R :> R := ler0n _ _.
have s_ge0 : 0 <= (s v)%:R :> R := ler0n _ _.
move: (y%:R) ((s v)%:R) gap y_ge0 s_ge0 => Y S gap Y_ge0 S_ge0.
have gap1 : 0 < Y + 1 - S by rewrite addrAC ltr_paddr ?ler01.
have gap2 : 0 < Y + 2%:R - S by rewrite addrAC ltr_paddr ?ler0n.
rewrite !mulf_div ler_pdivr_mulr ?mulr_gt0 // mulrAC ler_pdivl_mulr ?mulr_gt0 // -subr_ge0.
rewrite [leRHS](_ : _ = S * (Y + 1 + (Y + 1 - S))); last by ring.
by apply: mulr_ge0 => //; apply: addr_ge0; [rewrite addr_ge0 ?ler01 | apply: ltW].
Qed.

Lemma kept v t : (t <= c)%N -> (s v <= n v - t)%N.
Proof.
move=> le_t; case: (posnP (s v)) => [-> // | /room le_n].
have le_tn : (t <= n v)%N := leq_trans le_t (leq_trans (leq_addl _ _) le_n).
by rewrite leq_subRL // addnC; apply: leq_trans le_n; rewrite leq_add2l.
Qed.

Lemma mass_more v x a : (s v <= x)%N ->
  mass p (s v) (x + a) = (1 - p) ^+ a * (mass p (s v) x * \prod_(i < a) factor v (x + i.+1)%N).
Proof.
move=> le_sx; elim: a => [|a IH]; first by rewrite addn0 big_ord0 mulr1 mul1r.
have lt_s : (s v < (x + a).+1)%N by rewrite ltnS (leq_trans le_sx) ?leq_addr.
have gap : (x + a).+1%:R - (s v)%:R != 0 :> R by rewrite lt0r_neq0 // subr_gt0 ltr_nat.
have trial := mass_trial p (s v) (x + a); rewrite natrB 1?ltnW // in trial.
rewrite addnS big_ord_recr /= addnS exprS; apply: (mulIf gap); rewrite trial IH.
by move: (\prod_(i < a) _) => P; rewrite /factor; move: ((x + a).+1%:R) gap => N gap; field.
Qed.

(* The probability of the sample after r v rows were taken away and d v given back. *)
Lemma chance_overwritten (r d : V -> nat) : (\sum_v r v = c)%N -> (\sum_v d v = c)%N ->
  chance p s (fun v => n v - r v + d v)%N
  = (1 - p) ^+ c * chance p s (fun v => n v - r v)%N * \prod_v gained v (r v) (d v).
Proof.
move=> sum_r sum_d.
have le_rc v : (r v <= c)%N by rewrite -sum_r (bigD1 v) //= leq_addr.
rewrite /chance -[in X in X * _]sum_d expr_sum -!big_split /=; apply: eq_bigr => v _.
by rewrite mass_more ?kept // mulrA.
Qed.

(* If the corners are within 1 + eps, so is every ratio ... *)
Theorem sharp_criterion (r a b : V -> nat) : (0 < c)%N ->
    (\sum_v r v = c)%N -> (\sum_v a v = c)%N -> (\sum_v b v = c)%N ->
    (forall u, \prod_v gained v (corner c u v) (a v) <= 1 + eps) ->
  chance p s (fun v => n v - r v + a v)%N <= (1 + eps) * chance p s (fun v => n v - r v + b v)%N.
Proof.
move=> c_gt0 sum_r sum_a sum_b corners.
have le_rc v : (r v <= c)%N by rewrite -sum_r (bigD1 v) //= leq_addr.
have q_gt0 : 0 < 1 - p by rewrite subr_gt0.
rewrite !chance_overwritten //; set C := (1 - p) ^+ c * _.
have C_ge0 : 0 <= C by rewrite mulr_ge0 ?exprn_ge0 ?(ltW q_gt0) // prodr_ge0 // => v _; apply: mass_ge0.
have above v t i : (t <= c)%N -> (s v < n v - t + i.+1)%N by move=> le_t; rewrite addnS ltnS (leq_trans (kept v le_t)) ?leq_addr.
have b_ge1 : 1 <= \prod_v gained v (r v) (b v).
  apply: (big_ind (fun x => 1 <= x)) => // [x y x1 y1 | v _]; first by rewrite mulr_ege1.
  by apply: (big_ind (fun x => 1 <= x)) => // [x y x1 y1 | i _]; [rewrite mulr_ege1 | apply/factor_ge1/above/le_rc].
have [||u bound] := @at_a_corner R V (fun v t => gained v t (a v)) c _ _ r c_gt0 sum_r.
- move=> v t le_t; apply: prodr_gt0 => i _.
  by apply: lt_le_trans (factor_ge1 (above v t i le_t)); apply: ltr01.
- move=> v t lt_t; rewrite /gained -!big_split /=; apply: ler_prod => i _.
  have f_ge0 e j : (e <= c)%N -> 0 <= factor v (n v - e + j.+1)%N.
    by move=> le_e; apply: le_trans (factor_ge1 (above v e j le_e)); apply: ler01.
  rewrite mulr_ge0 ?f_ge0 1?ltnW //=.
  case: (posnP (s v)) => [s_0 | /room le_n]; first by rewrite !factor_absent ?addnS.
  have le_tn : (t.+2 <= n v)%N by rewrite (leq_trans lt_t) // (leq_trans _ le_n) // leq_addl.
  have e1 : (n v - t.+1 = (n v - t.+2).+1)%N by rewrite -subSn // subSS.
  have e0 : (n v - t = (n v - t.+2).+2)%N by rewrite -e1 -subSn ?subSS // ltnW.
  by rewrite e0 e1 !addSn; apply: factor_convex; apply: above.
apply: le_trans (ler_wpmul2l C_ge0 (le_trans bound (corners u))) _.
rewrite mulrC; apply: ler_wpmul2l; first by rewrite addr_ge0 ?ler01.
by rewrite -[leLHS]mulr1; apply: ler_wpmul2l.
Qed.

(* ... and each corner is attained, as soon as some value is not in the sample. *)
Theorem sharp_criterion_is_attained (a : V -> nat) u w : s w = 0%N -> (\sum_v a v = c)%N ->
  chance p s (fun v => n v - corner c u v + a v)%N
  = \prod_v gained v (corner c u v) (a v) * chance p s (fun v => n v - corner c u v + corner c w v)%N.
Proof.
move=> s_w sum_a.
have sum_corner x : (\sum_v corner c x v = c)%N.
  by rewrite (bigD1 x) //= /corner eqxx big1 ?addn0 // => v /negbTE ->.
rewrite !chance_overwritten //.
have -> : \prod_v gained v (corner c u v) (corner c w v) = 1.
  apply: big1 => v _; rewrite {2}/corner; case: eqVneq => [-> | _]; last by rewrite /gained big_ord0.
  by apply: big1 => i _; rewrite factor_absent // addnS.
by rewrite mulr1 mulrC.
Qed.

End Criterion.
